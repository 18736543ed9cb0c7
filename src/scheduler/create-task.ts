import type { Desk } from './desk.ts'
import { laneDefinition, Lanes, mainDefinition } from './lanes.ts'
import { Task } from './task.ts'
import type { TaskDefinition } from './task-options.ts'
import type { TaskHandler } from './task-run.ts'

/** A task of a node, with its lanes if its runs may overlap. */
export function createTask(desk: Desk, definition: TaskDefinition, handler: TaskHandler): Task {
  const { laneCount } = definition
  if (laneCount === 0) return new Task(desk, definition, handler)
  const tasks = Array.from(
    { length: laneCount },
    (_, index) => new Task(desk, laneDefinition(definition, index), handler),
  )
  return new Task(desk, mainDefinition(definition), handler, new Lanes(desk, definition, tasks))
}

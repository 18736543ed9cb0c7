// A test framework that fakes all that can be waited for, as jest does: nothing of it ever comes. Prints how often a task
// ran all the same.
import { TestFleet } from 'leasehold/testing'

const { nextTick } = process
const { queueMicrotask, setImmediate, setInterval, setTimeout } = globalThis
const never = (): void => {}
Object.assign(process, { nextTick: never })
Object.assign(globalThis, {
  queueMicrotask: never,
  setImmediate: never,
  setInterval: never,
  setTimeout: never,
})

let ran = 0
const fleet = new TestFleet()
for (const { tasks } of [fleet.node(), fleet.node()]) {
  tasks.schedule('tick', { every: '1h' }, () => void ran++)
}
await fleet.start()
await fleet.advance('5h')
await fleet.close()

Object.assign(process, { nextTick })
Object.assign(globalThis, { queueMicrotask, setImmediate, setInterval, setTimeout })
console.log(ran)

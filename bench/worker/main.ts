// A process that a scenario started: does what it is asked in messages, and ends when nobody can ask it any more.
import { inspect } from 'node:util'
import { openHolder } from './holder.ts'
import { openKeeper } from './keeper.ts'
import { openNode } from './node.ts'
import type { Reply, Request, Verbs } from './protocol.ts'

const roles: Readonly<Record<string, (setup: never) => Promise<Verbs>>> = {
  holder: openHolder,
  keeper: openKeeper,
  node: openNode,
}

const [, , role = '', setup = '{}'] = process.argv
const open = roles[role]
if (open === undefined) throw new Error(`There is no role ${role}`)
const opening = open(JSON.parse(setup) as never)

process.on('message', (request: Request) => void answer(request))
process.once('disconnect', () => process.exit(0))

async function answer({ id, verb, args }: Request): Promise<void> {
  let reply: Reply
  try {
    const verbs = await opening
    if (verb !== 'ready' && verbs[verb] === undefined) throw new Error(`A ${role} knows no ${verb}`)
    reply = { id, result: await verbs[verb]?.(...(args as never[])) }
  } catch (error) {
    reply = { id, error: inspect(error) }
  }
  process.send?.(reply)
}

import type { Actor } from './actor.ts'
import { until } from './until.ts'

/** Asks again where a connection broke: what the core does. */
export async function persist<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined
  await until(
    'the driver has recovered',
    async () => {
      try {
        answer = await ask()
        return 'answered'
      } catch (error) {
        return String(error)
      }
    },
    (state) => state === 'answered',
  )
  return answer as Answer
}

/** A pool may have more broken connections than were used; the next behaviour must not meet them. */
export async function recover(nodes: readonly Actor[]): Promise<void> {
  for (const node of nodes) {
    await persist(() => Promise.all(Array.from({ length: 16 }, () => node.peek('key'))))
  }
}

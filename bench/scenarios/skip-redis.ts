import { countOn } from '../counting/counter.ts'
import { freshKey, type Mutex } from '../mutex.ts'
import { inTurns } from '../rounds.ts'
import type { Finding, Scenario } from '../scenario.ts'
import { openMutex } from '../subjects/families.ts'
import { redisSubjects } from '../subjects/redis.ts'

const losers = 100
const countedMs = 200

export const skipOnRedis: Scenario = {
  name: 'redis.skip',
  what: `${losers} callers try, again and again, for a key that somebody else holds`,
  async run(stores, pace) {
    const counted = await countOn('redis', stores)
    const trials = await Promise.all(
      redisSubjects.map(async ({ name, role }, index) => {
        const { url, counter } = counted.place(index)
        const [holder, loser] = await Promise.all([
          openMutex('redis', name, url),
          openMutex('redis', name, url),
        ])
        const key = freshKey()
        return { name, role, holder, loser, key, counter, commandsPerTry: 0 }
      }),
    )
    for (const trial of trials) {
      trial.counter.reset()
      const { tries } = await lose(trial, countedMs)
      // What the last answers followed is in the record by now: it is written in order.
      await new Promise((resolve) => setTimeout(resolve, 100))
      trial.commandsPerTry = trial.counter.count() / tries
    }
    await counted.pause()
    const turns = trials.map((trial) => ({
      name: trial.name,
      run: async (ms: number) => (await lose(trial, ms)).perSecond,
    }))
    const values = await inTurns(turns, pace)
    for (const { holder, loser } of trials) await Promise.all([holder.close(), loser.close()])
    return trials.flatMap(({ name, role, commandsPerTry }): Finding[] => [
      { subject: name, role, metric: 'opsPerSecond', values: values.get(name) ?? [] },
      { subject: name, role, metric: 'commandsPerTry', values: [commandsPerTry] },
    ])
  },
}

interface Trial {
  readonly holder: Mutex
  readonly loser: Mutex
  readonly key: string
}

/** The key is held just for this: most of the others don't renew. */
async function lose(
  { holder, loser, key }: Trial,
  ms: number,
): Promise<{ tries: number; perSecond: number }> {
  const hold = await holder.tryAcquire(key)
  if (hold === null) throw new Error('A fresh key was refused')
  const startedAt = performance.now()
  let tries = 0
  const loop = async (): Promise<void> => {
    while (performance.now() - startedAt < ms) {
      if ((await loser.tryAcquire(key)) !== null) throw new Error('A key that is held was granted')
      tries += 1
    }
  }
  await Promise.all(Array.from({ length: losers }, loop))
  const perSecond = tries / ((performance.now() - startedAt) / 1_000)
  await hold.release()
  return { tries, perSecond }
}

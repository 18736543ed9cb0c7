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
        const hold = await holder.tryAcquire(key)
        if (hold === null) throw new Error(`${name} refused a fresh key`)
        return { name, role, holder, hold, loser, key, counter, commandsPerTry: 0 }
      }),
    )
    for (const trial of trials) {
      trial.counter.reset()
      const { tries } = await lose(trial.loser, trial.key, countedMs)
      // What the last answers followed is in the record by now: it is written in order.
      await new Promise((resolve) => setTimeout(resolve, 100))
      trial.commandsPerTry = trial.counter.count() / tries
    }
    await counted.pause()
    const turns = trials.map(({ name, loser, key }) => ({
      name,
      run: async (ms: number) => (await lose(loser, key, ms)).perSecond,
    }))
    const values = await inTurns(turns, pace)
    for (const { holder, hold, loser } of trials) {
      await hold.release()
      await Promise.all([holder.close(), loser.close()])
    }
    return trials.flatMap(({ name, role, commandsPerTry }): Finding[] => [
      { subject: name, role, metric: 'opsPerSecond', values: values.get(name) ?? [] },
      { subject: name, role, metric: 'commandsPerTry', values: [commandsPerTry] },
    ])
  },
}

async function lose(mutex: Mutex, key: string, ms: number): Promise<{ tries: number; perSecond: number }> {
  const startedAt = performance.now()
  let tries = 0
  const loop = async (): Promise<void> => {
    while (performance.now() - startedAt < ms) {
      if ((await mutex.tryAcquire(key)) !== null) throw new Error('A key that is held was granted')
      tries += 1
    }
  }
  await Promise.all(Array.from({ length: losers }, loop))
  return { tries, perSecond: tries / ((performance.now() - startedAt) / 1_000) }
}

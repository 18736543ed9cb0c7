import { Worker } from 'node:worker_threads'
import type { SeedResult } from './series.ts'

/** Seeds that a thread is given at once. */
const share = 25
/** A run takes some milliseconds. One that has not ended after this goes round in circles. */
const stuckAfterMs = 60_000

/** Runs the seeds on so many threads, and hands over each result as it comes. */
export async function runSeeds(
  seeds: { readonly from: number; readonly to: number },
  threads: number,
  onResult: (result: SeedResult) => void,
): Promise<void> {
  let next = seeds.from
  await Promise.all(
    Array.from({ length: threads }, async () => {
      while (next < seeds.to) {
        const worker = new Worker(new URL('./seed-worker.js', import.meta.url))
        try {
          let isStuck = false
          while (next < seeds.to && !isStuck) {
            const from = next
            const to = Math.min(from + share, seeds.to)
            next = to
            const ended = await runShare(worker, from, to, onResult)
            isStuck = ended < to
            if (isStuck) await runRest(ended, to, onResult)
          }
        } finally {
          await worker.terminate()
        }
      }
    }),
  )
}

/** The first of these seeds is stuck; the others are run on a new thread. */
async function runRest(stuck: number, to: number, onResult: (result: SeedResult) => void): Promise<void> {
  const what = `The run did not end within ${stuckAfterMs} ms.`
  onResult({
    seed: stuck,
    violations: [{ promise: 'G9', at: 0, what }],
    overlapMs: 0,
    excused: {},
    met: [],
    isStuck: true,
  })
  await runSeeds({ from: stuck + 1, to }, 1, onResult)
}

/** Resolves with the first seed that did not come to an end; `to` if all did. */
function runShare(
  worker: Worker,
  from: number,
  to: number,
  onResult: (result: SeedResult) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let seed = from
    const settle = (): void => {
      clearTimeout(timer)
      worker.off('message', onMessage)
      worker.off('error', reject)
      resolve(seed)
    }
    const timer = setTimeout(settle, stuckAfterMs)
    const onMessage = (result: SeedResult): void => {
      timer.refresh()
      onResult(result)
      if (++seed === to) settle()
    }
    worker.on('message', onMessage)
    worker.once('error', reject)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage([from, to])
  })
}

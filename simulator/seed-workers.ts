import { Worker } from 'node:worker_threads'
import type { SeedResult } from './series.ts'

/** Seeds that a thread is given at once. */
const share = 25

/** Runs the seeds on so many threads, and hands over each result as it comes. */
export async function runSeeds(
  seeds: { readonly from: number; readonly to: number },
  threads: number,
  onResult: (result: SeedResult) => void,
): Promise<void> {
  let next = seeds.from
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = new Worker(new URL('./seed-worker.js', import.meta.url))
      try {
        while (next < seeds.to) {
          const from = next
          next = Math.min(from + share, seeds.to)
          await runShare(worker, from, next, onResult)
        }
      } finally {
        await worker.terminate()
      }
    }),
  )
}

function runShare(
  worker: Worker,
  from: number,
  to: number,
  onResult: (result: SeedResult) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = to - from
    const onMessage = (result: SeedResult): void => {
      onResult(result)
      if (--left > 0) return
      worker.off('message', onMessage)
      worker.off('error', reject)
      resolve()
    }
    worker.on('message', onMessage)
    worker.once('error', reject)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage([from, to])
  })
}

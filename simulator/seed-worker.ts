// A thread that runs seeds: is sent [from, to], and answers with the result of each.
import { parentPort } from 'node:worker_threads'
import { runSeed } from './series.ts'

// Faults are errors by the thousand, and nobody reads where they were made.
Error.stackTraceLimit = 0
parentPort?.on('message', async ([from, to]: readonly [number, number]) => {
  for (let seed = from; seed < to; seed++) {
    const result = await runSeed(seed)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    parentPort?.postMessage(result)
  }
})

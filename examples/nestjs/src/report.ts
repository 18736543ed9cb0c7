import { currentRun } from 'leasehold/nestjs'

/** Stands for the work: says that it was done, by which process, and for which slot if there is one. */
export async function report(job: string, more: object = {}): Promise<void> {
  const slot = currentRun()?.slot?.getTime() ?? null
  await new Promise((resolve) => setTimeout(resolve, 5))
  process.stdout.write(`${JSON.stringify({ job, pid: process.pid, at: Date.now(), slot, ...more })}\n`)
}

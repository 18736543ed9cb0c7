// A service with an endpoint that starts work of which only one may run at a time, however many processes answer:
// whoever comes meanwhile gets a 409.
//
//   LEASEHOLD_URL=redis://localhost:6379 PORT=3000 node service.js
import express, { type NextFunction, type Request, type Response } from 'express'
import { connect, StoreUnavailableError } from 'leasehold'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const locks = await connect()
const app = express()

app.post('/reports/:id', async (request, response) => {
  const lease = await locks.acquire(`report:${request.params.id}`, { label: 'POST /reports' })
  if (lease === null) {
    response.status(409).json({ error: 'This report is being written. Try again later.' })
    return
  }
  try {
    console.log(`writing report ${request.params.id}`)
    await writeReport(lease.signal)
    // What comes after the lease was lost does not count: another process may write the report by now.
    lease.assertHeld()
  } finally {
    // Before the answer: who hears that it is done and asks again gets the lock.
    await lease.release()
  }
  response.status(201).json({ id: request.params.id, fence: lease.fence })
})

// Held by another is an answer; "could not find out" is an error.
app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (!(error instanceof StoreUnavailableError)) return next(error)
  response.status(503).json({ error: 'The locks cannot be reached. Try again later.' })
})

async function writeReport(signal: AbortSignal): Promise<void> {
  await sleep(Number(process.env['REPORT_MS'] ?? 2_000), undefined, { signal })
}

const server = app.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`)
})

process.once('SIGTERM', () => {
  // Requests that are under way are answered first: they hold leases.
  server.close(() => void locks.close())
})

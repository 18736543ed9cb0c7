// A process that listens, then closes its own client and nothing else. Arguments: which client, the server's URL.
import { clientKinds, openClient, type ClientKind } from './clients.ts'
import { redisDriver } from 'leasehold/redis'

/** What it says once it listens, and then nothing more. */
export type Said = 'listening'

process.on('uncaughtException', (error) => {
  console.log(`uncaught: ${error.message}`)
  process.exitCode = 1
})

const [, , wanted, url] = process.argv
const kind = clientKinds.find((known) => known === wanted) as ClientKind
const opened = await openClient(kind, url as string)
const session = redisDriver(opened.client).open('process')
const channel = await session.listen?.({ onNotice() {}, onDeaf() {} })
await channel?.probe()
console.log('listening' satisfies Said)
await opened.close()

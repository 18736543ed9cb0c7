import { connect } from 'leasehold'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { freshPostgresUrl, isAvailable } from '../../support/stores.ts'

describe.skipIf(!(await isAvailable('postgres')))(
  'connect() with postgres.js, closed just after an outage',
  () => {
    it.each([200, 400, 700])(
      'keeps none of the connections that the client had planned before (%d ms of outage)',
      async (outageMs) => {
        const proxy = await startFaultProxy(await freshPostgresUrl())
        onTestFinished(() => proxy.close())
        const locks = await connect(proxy.url, { client: 'postgres', requestTimeout: 300 })
        await locks.acquire('first')
        await proxy.set('refuse')
        const asked = Array.from({ length: 12 }, (_, index) => locks.acquire(`k${index}`, { wait: '3s' }))
        const settled = Promise.allSettled(asked)
        await new Promise((resolve) => setTimeout(resolve, outageMs))
        const closed = locks.close()
        await proxy.set('pass')
        await Promise.all([closed, settled])
        // Its next tries are at most a second ahead, and a connection that it makes then stays for ever.
        await new Promise((resolve) => setTimeout(resolve, 1_100))
        await expect.poll(() => proxy.connections, { timeout: 5_000 }).toBe(0)
      },
    )
  },
)

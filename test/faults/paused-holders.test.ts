// A holder that was stopped, or that kept its event loop busy, past its ttl knows so before it does anything else
// (N57, M17, N4, N23), and does no harm to whoever has the key by then (M6, M7, N21, N27, N28).
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Lease } from 'leasehold'
import { FencedFile } from '../programs/fenced-file.ts'
import { freshNamespace } from '../support/stores.ts'
import { addressOf, describeEach, everyStore, openService, temporaryFolder } from './subjects.ts'
import { Worker } from './worker-process.ts'

const ttl = 400

/** A holder in another process, and a successor here who waits for its key and writes to the fenced file. */
async function openScene(client: Parameters<typeof addressOf>[0]) {
  const address = await addressOf(client)
  const namespace = freshNamespace()
  const folder = temporaryFolder()
  const [path, waking] = [join(folder, 'resource'), join(folder, 'waking')]
  const file = new FencedFile(path)
  const holder = await Worker.start({ address, service: { namespace, ttl } })
  const locks = await openService(address, { namespace, ttl: 30_000 })
  const fence = (await holder.call('acquire', 'k', { wait: 10_000 }))!
  expect(file.write(fence, 1)).toBe(true)

  const succeed = async (): Promise<Lease> => {
    const lease = (await locks.acquire('k', { wait: 10_000 }))!
    expect(lease.fence).toBeGreaterThan(fence)
    expect(file.write(lease.fence, 2)).toBe(true)
    return lease
  }
  /** The successor, after all that the holder did when it ran again. */
  const expectUntouched = async (lease: Lease): Promise<void> => {
    expect(lease.isHeld()).toBe(true)
    await lease.extend(30_000)
    expect(await locks.peek('k')).toMatchObject({ fence: lease.fence })
    expect(file.read()).toEqual({ fence: lease.fence, value: 2 })
    expect(holder.events('lost')).toEqual([{ event: 'lost', key: 'k', reason: 'expired' }])
    expect(await lease.release()).toBe('released')
    expect(await locks.peek('k')).toBe(null)
  }
  /** Ends the pause of a stopped holder, which finds the file in the first statement that it runs. */
  const wake = (): void => {
    writeFileSync(waking, '')
    holder.signal('SIGCONT')
  }
  return { holder, path, waking, wake, succeed, expectUntouched }
}

/** What a holder has to find in its first statements after the pause. */
const lostAtOnce = {
  isHeld: false,
  remainingMs: 0,
  assertHeld: 'LEASE_LOST',
  aborted: true,
  throwIfAborted: 'LEASE_LOST',
  written: false,
}

await describeEach(everyStore, (client) => {
  test('a holder that was stopped past its ttl knows so in its first statement (N57, M17, M7, N27, N28, M6)', async () => {
    const { holder, path, waking, wake, succeed, expectUntouched } = await openScene(client)
    const awakening = holder.call('pause', 'k', waking, true, path)
    await holder.told('pausing')
    holder.signal('SIGSTOP')
    const successor = await succeed()
    wake()
    expect(await awakening).toEqual({
      first: lostAtOnce,
      heard: ['LEASE_LOST'],
      lossReason: 'expired',
      released: 'already-lost',
    })
    await expectUntouched(successor)
  })

  test('the abort listeners of a holder that was stopped are called in the first turn afterwards (N57, N23)', async () => {
    const { holder, path, waking, wake, succeed, expectUntouched } = await openScene(client)
    const awakening = holder.call('pause', 'k', waking, false, path)
    await holder.told('pausing')
    holder.signal('SIGSTOP')
    const successor = await succeed()
    wake()
    expect(await awakening).toMatchObject({ first: null, heard: ['LEASE_LOST'], released: 'already-lost' })
    await expectUntouched(successor)
  })

  test('a holder that was stopped between its renewals never takes the key back (N57, N21)', async () => {
    const { holder, succeed, expectUntouched } = await openScene(client)
    holder.signal('SIGSTOP')
    const successor = await succeed()
    holder.signal('SIGCONT')
    await holder.told('lost')
    expect(await holder.call('isHeld', 'k')).toBe(false)
    expect(await holder.call('release', 'k')).toBe('already-lost')
    await expectUntouched(successor)
  })

  test('a holder whose event loop was blocked past its ttl has lost the lease, and lives (N4, N23)', async () => {
    const { holder, path, succeed, expectUntouched } = await openScene(client)
    const awakening = holder.call('pause', 'k', 2 * ttl, true, path)
    const successor = await succeed()
    expect(await awakening).toEqual({
      first: lostAtOnce,
      heard: ['LEASE_LOST'],
      lossReason: 'expired',
      released: 'already-lost',
    })
    await expectUntouched(successor)
    await holder.call('close')
    await holder.call('leave')
    expect(await holder.ended).toBe(0)
  })
})

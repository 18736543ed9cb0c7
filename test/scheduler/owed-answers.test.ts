import { faultyDriver } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const retry = { onCrash: 'retry', ttl: '10s' } as const
const never = (): Promise<never> => new Promise(() => {})

/*
 * A claim is granted, its answer is lost, and no other gets through until the lease of that run has lapsed: nobody runs
 * it, and the token that would be answered with it has lost it.
 */
describe('a granted claim whose answer stays away for longer than its lease', () => {
  it('is taken over by the node that was granted it, under a new token', async () => {
    const fleet = new Fleet()
    const { driver, faults } = faultyDriver(fleet.driver)
    const node = fleet.node({ driver })
    node.runs('close', { every: '1h', ...retry, maxAttempts: 2 }, () => fleet.time.sleep(5))
    await fleet.start(node)
    faults.next('claim').loseAnswer()
    faults.always('claim').fail()
    await fleet.advanceTo('2026-01-01T01:00:30Z')
    faults.heal()
    await fleet.advance(5_000)
    expect(fleet.ran).toEqual(['n1 3600/2'])
    expect(await fleet.history('close')).toEqual(['3600/1 lost', '3600/2 succeeded'])
    expect(new Set(node.link.requests('claim').map(({ token }) => token)).size).toBe(2)
  })

  it('is taken over by another node, if that is the first to get through', async () => {
    const fleet = new Fleet()
    const { driver, faults } = faultyDriver(fleet.driver)
    const [node, other] = [fleet.node({ driver }), fleet.node()]
    for (const one of [node, other]) one.runs('close', { every: '1h', ...retry }, () => fleet.time.sleep(5))
    await fleet.start(node, other)
    faults.next('claim').loseAnswer()
    faults.always('claim').fail()
    await fleet.advanceTo('2026-01-01T01:00:30Z')
    faults.heal()
    await fleet.advance(5_000)
    expect(fleet.ran).toEqual(['n2 3600/2'])
    expect(await fleet.history('close')).toEqual(['3600/1 lost', '3600/2 succeeded'])
  })

  it("is recorded as lost, once, with onCrash: 'skip'", async () => {
    const fleet = new Fleet()
    const { driver, faults } = faultyDriver(fleet.driver)
    const node = fleet.node({ driver })
    node.runs('mail', { every: '1h', ttl: '10s' })
    await fleet.start(node)
    faults.next('claim').loseAnswer()
    faults.always('claim').fail()
    await fleet.advanceTo('2026-01-01T01:00:30Z')
    faults.heal()
    await fleet.advance(5_000)
    expect(fleet.notes).toEqual([])
    expect(await fleet.history('mail')).toEqual(['3600/1 lost'])
    expect(fleet.slotEvents.filter(({ outcome }) => outcome === 'lost')).toHaveLength(1)
  })

  it.each(['retry', 'skip'] as const)(
    'costs the next slot nothing, though it is claimed under the token of the lapsed run (%s)',
    async (onCrash) => {
      const fleet = new Fleet()
      const { driver, faults } = faultyDriver(fleet.driver)
      const node = fleet.node({ driver })
      node.runs('close', { every: '2m', ttl: '10s', onCrash }, () => fleet.time.sleep(5))
      await fleet.start(node)
      faults.next('claim').loseAnswer()
      // Registrations get through, so that the node knows what the mark is and claims the next slot after it.
      faults.always('claim').fail()
      await fleet.advanceTo('2026-01-01T00:04:01Z')
      faults.heal()
      await fleet.advance(5_000)
      const requests = node.link.requests('claim')
      const token = requests[0]?.['token']
      const [slot, after] = [Date.parse('2026-01-01T00:04:00Z'), Date.parse('2026-01-01T00:02:00Z')]
      expect(requests).toContainEqual(expect.objectContaining({ slot, after, token }))
      expect(await fleet.history('close')).toEqual(
        onCrash === 'retry'
          ? ['120/1 lost', '120/2 succeeded', '240/1 succeeded']
          : ['120/1 lost', '240/1 succeeded'],
      )
    },
  )
})

describe('a claim that arrives once more when its run has lapsed', () => {
  it('uses up no attempt: a live node makes the next one', async () => {
    const fleet = new Fleet()
    const { driver, faults } = faultyDriver(fleet.driver)
    const [node, other] = [fleet.node({ driver }), fleet.node()]
    node.runs('close', { every: '1h', ...retry, maxAttempts: 2 }, never)
    other.runs('close', { every: '1h', ...retry, maxAttempts: 2 }, () => fleet.time.sleep(5))
    await fleet.start(node)
    const duplicate = faults.next('claim').deliverAgainLater()
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    expect(fleet.ran).toEqual(['n1 3600/1'])
    node.kill()
    await fleet.advance(20_000)
    duplicate.letGo()
    await fleet.advance(1_000)
    await fleet.start(other)
    await fleet.advance(1_000)
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
    expect(await fleet.history('close')).toEqual(['3600/1 lost', '3600/2 succeeded'])
  })
})

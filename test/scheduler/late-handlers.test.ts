import { expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

it('a handler that ends after the service was closed has nothing sent, also where its lease was lost before', async () => {
  const fleet = new Fleet()
  const node = fleet.node()
  node.runs('task', { every: '1m', ttl: '2s' }, () => fleet.time.sleep(20_000))
  await fleet.start(node)
  await fleet.advance(61_000)
  node.link.isCut = true
  await fleet.advance(5_000)
  await fleet.time.until(node.locks.close())
  node.link.isCut = false
  await fleet.advance(30_000)
  expect(fleet.slotsRun).toEqual([60])
  expect(node.link.count('complete')).toBe(0)
})

// A user's test of a scheduled task, for `node --test`.
import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { TestFleet } from 'leasehold/testing'

void test('the digest goes out once a day', async () => {
  await using fleet = new TestFleet()
  const sent: string[] = []
  for (const { tasks } of [fleet.node(), fleet.node()]) {
    tasks.schedule('digest', { cron: '0 8 * * *' }, ({ slot }) => void sent.push(slot.toISOString()))
  }
  await fleet.start()
  await fleet.advance('48h')
  deepEqual(sent, ['2026-01-01T08:00:00.000Z', '2026-01-02T08:00:00.000Z'])
  deepEqual(fleet.failures, [])
})

import fc from 'fast-check'
import { type Lease, LockService, type RunHistoryEntry, TaskScheduler } from 'leasehold'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { toStoredKey } from '../../src/core/stored-key.ts'
import { freshNamespace } from '../support/stores.ts'
import { fuzz } from './fuzz.ts'
import { realStores } from './real-stores.ts'

/** Pieces that stores, protocols and query languages give a meaning to, and what encodings stumble over. */
const piece = fc.oneof(
  fc.constantFrom(
    "'",
    '"',
    '`',
    "''",
    "'; drop table leasehold_leases; --",
    "' or 1=1 /*",
    '$1',
    '$$',
    ':a',
    '?',
    '%',
    '_',
    '\\',
    '\\0',
    '\\x00',
    '\0',
    '\r\n',
    '\n',
    '\t',
    ' ',
    '\u00a0',
    '{',
    '}',
    '{tag}',
    '*',
    '[a-z]',
    ']] redis.call("FLUSHALL") --[[',
    "return redis.call('SET',KEYS[1],'x')",
    '*3\r\n$3\r\nDEL\r\n',
    ':k:',
    ':t:',
    'sha256:',
    '\ud800',
    '\udc00',
    '\ud83d\ude00',
    '\ufeff',
    'e\u0301',
    '\u00e9',
    'ß',
    'İ',
    '"}',
    '[null]',
    '__proto__',
  ),
  fc.string({ maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.nat(300).map((length) => 'x'.repeat(length)),
  fc.nat(300).map((length) => 'é'.repeat(length)),
)

const name = fc
  .array(piece, { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join(''))
  .filter((text) => text !== '')

/** What is easily taken for the same name: case, spaces, normal forms, what a store would see of it. */
const variants: readonly ((name: string) => string)[] = [
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => `${text} `,
  (text) => ` ${text}`,
  (text) => `${text}\0`,
  (text) => `${text}\n`,
  (text) => text.normalize('NFC'),
  (text) => text.normalize('NFD'),
  (text) => text.toWellFormed(),
  (text) => text.replaceAll('\0', '\ufffd'),
  (text) => text.slice(0, 255),
  (text) => toStoredKey('name', text),
  (text) => toStoredKey('name', toStoredKey('name', text)),
  (text) => JSON.stringify(text),
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => `${text}${'y'.repeat(1_000_000)}`,
  (text) => `${text}${'y'.repeat(999_999)}z`,
]

const names = fc
  .array(fc.tuple(name, fc.subarray([...variants], { maxLength: 6 })), { minLength: 1, maxLength: 5 })
  .map((families) => [
    ...new Set(families.flatMap(([text, changes]) => [text, ...changes.map((change) => change(text))])),
  ])
  .map((all) => all.filter((text) => text !== ''))

describe.each(realStores)('names on $name', ({ isHere, open }) => {
  let store: Awaited<ReturnType<typeof open>>
  beforeAll(async () => {
    if (isHere) store = await open()
  })
  afterAll(() => store?.close())

  it.skipIf(!isHere)(
    'of keys: all are granted at once, each to one holder, seen as they are and given back',
    async () => {
      await using locks = new LockService({ driver: store.driver, namespace: freshNamespace() })
      await using others = new LockService({ driver: store.driver, namespace: locks.namespace })
      await fuzz(names, { runs: 25, withinMs: 20_000 }, async (keys) => {
        const leases = await Promise.all(keys.map((key) => locks.acquire(key, { label: key.slice(0, 200) })))
        expect(leases.every((lease) => lease?.isHeld())).toBe(true)
        expect(await Promise.all(keys.map((key) => others.acquire(key)))).toEqual(keys.map(() => null))

        const seen = await Promise.all(keys.map((key) => others.peek(key)))
        expect(seen.map((info) => info?.fence)).toEqual(leases.map((lease) => lease?.fence))
        expect(seen.map((info) => info?.holder.label)).toEqual(keys.map((key) => key.slice(0, 200)))
        const listed = await others.list()
        expect(new Set(listed.map(({ fence }) => fence))).toEqual(
          new Set(leases.map((lease) => lease?.fence)),
        )
        expect(new Set(listed.map(({ key }) => key)).size).toBe(keys.length)
        for (const info of listed) {
          expect((await others.peek(info))?.fence).toBe(info.fence)
          expect((await others.list({ prefix: info.key })).map(({ key }) => key)).toContain(info.key)
        }

        const [first, ...rest] = leases as [Lease, ...Lease[]]
        expect(
          await others.forceRelease(listed.find(({ fence }) => fence === first.fence) ?? '', {
            immediate: true,
          }),
        ).toBe('released')
        expect(await Promise.all(rest.map((lease) => lease.release()))).toEqual(rest.map(() => 'released'))
        await first.release()
        expect(await others.list()).toEqual([])
      })
    },
  )

  it.skipIf(!isHere)('of namespaces: none sees what is in another', async () => {
    await fuzz(names, { runs: 8, withinMs: 20_000 }, async (namespaces) => {
      const own = freshNamespace()
      const services = namespaces.map(
        (each) => new LockService({ driver: store.driver, namespace: `${each}${own}` }),
      )
      try {
        const leases = await Promise.all(services.map((service) => service.acquire('key')))
        expect(leases.every((lease) => lease?.isHeld())).toBe(true)
        for (const [at, service] of services.entries()) {
          expect((await service.list()).map(({ fence }) => fence)).toEqual([leases[at]?.fence])
        }
      } finally {
        await Promise.all(services.map((service) => service.close()))
      }
    })
  })

  it.skipIf(!isHere)('of tasks: each runs as itself, and has a history of its own', async () => {
    await fuzz(names, { runs: 2, withinMs: 30_000 }, async (tasks) => {
      await using locks = new LockService({ driver: store.driver, namespace: freshNamespace() })
      await using scheduler = new TaskScheduler({ locks, keepAlive: false })
      const ran = new Set<string>()
      for (const task of tasks) {
        scheduler.schedule(task, { every: '300ms' }, (run) => {
          ran.add(task)
          if (run.task !== task) throw new Error(`${run.task} is not ${task}.`)
        })
      }
      await scheduler.start()
      await vi.waitFor(() => expect(ran.size).toBe(tasks.length), { timeout: 25_000 })
      await scheduler.stop()
      for (const task of tasks) {
        const history = await scheduler.history(task)
        const states = history.map(({ state }: RunHistoryEntry) => state)
        expect(states.at(-1)).toBe('registered')
        expect(states).toContain('succeeded')
        expect(states).not.toContain('failed')
        expect(new Set(history.map((entry) => entry.task))).toEqual(new Set([task]))
      }
    })
  })
})

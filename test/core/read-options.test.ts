import { InvalidOptionError, LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { expect, it } from 'vitest'
import { readOptions } from '../../src/core/read-options.ts'

interface Options {
  readonly ttl?: string | undefined
  readonly label?: string | undefined
}

const read = (options: object) => readOptions<Options>('acquire', options, ['ttl', 'label'])

it('options are read once: what was checked is what is used', () => {
  let times = 0
  const options = {
    get ttl() {
      return ++times === 1 ? '5s' : 'never'
    },
  }
  const copy = read(options)
  expect([copy.ttl, copy.ttl, times]).toEqual(['5s', '5s', 1])
})

it('options may come in an instance of a class, with getters of its own', () => {
  class Config {
    get ttl(): string {
      return '5s'
    }
  }
  expect(read(new Config())).toEqual({ ttl: '5s' })
})

it('an option that is undefined is left out', () => {
  expect(Object.keys(read({ ttl: undefined, label: 'a' }))).toEqual(['label'])
})

it('an option that cannot be read is refused by its name, with what it threw for the cause', () => {
  const cause = new Error('not loaded yet')
  const options = {
    get label(): string {
      throw cause
    },
  }
  expect(() => read(options)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', option: 'label', cause }),
  )
})

it('an option that does not exist is refused, also by the drivers', () => {
  expect(() => read({ tll: '5s' })).toThrow(/acquire has no option "tll". Its options: ttl, label/)
  expect(() => memoryDriver({ stroe: 'tests' } as never)).toThrow(InvalidOptionError)
})

it('a guarded function goes by the options that it was made with', async () => {
  await using locks = new LockService({ driver: memoryDriver({ store: 'read-options' }) })
  const options = { label: 'before' }
  const seen: (string | undefined)[] = []
  const guarded = locks.exclusive(
    'key',
    async () => seen.push((await locks.peek('key'))?.holder.label),
    options,
  )
  options.label = 'after'
  expect(await guarded()).toBe('ran')
  expect(seen).toEqual(['before'])
})

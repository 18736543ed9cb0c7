import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { driverContract } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { proseLines, readPages } from './markdown.ts'

const prose = (path: string): string => {
  const page = readPages().find((candidate) => candidate.path === path)
  return page === undefined ? '' : proseLines(page).join('\n')
}
const source = (path: string): string => readFileSync(join(root, path), 'utf8')

describe('docs/errors.md', () => {
  const codes = [...source('src/core/errors.ts').matchAll(/readonly code = '(\w+)' as const/g)].map(
    ([, code]) => code,
  )

  it('has a section for each error code, and for no other', () => {
    const sections = [...prose('docs/errors.md').matchAll(/^## (\w+)$/gm)].map(([, code]) => code)
    expect(codes.length).toBeGreaterThan(0)
    expect(new Set(sections)).toEqual(new Set(codes))
  })
})

describe('the pages about events', () => {
  it('name each channel', () => {
    const channels = [...source('src/core/channels.ts').matchAll(/^ {2}'(leasehold:[\w-]+)':/gm)].map(
      ([, name]) => name,
    )
    const text = prose('docs/locks.md') + prose('docs/scheduling.md')
    expect(channels.length).toBeGreaterThan(0)
    expect(channels.filter((name) => !text.includes(`\`${name}\``))).toEqual([])
  })
})

describe('docs/guarantees.md', () => {
  const text = prose('docs/guarantees.md')
  const promises = text.split(/^## /m).filter((section) => /^G\d /.test(section))

  it('has the nine promises, each with its limits and its checks', () => {
    expect(promises.map((section) => section.slice(0, 2))).toEqual([
      'G1',
      'G2',
      'G3',
      'G4',
      'G5',
      'G6',
      'G7',
      'G8',
      'G9',
    ])
    for (const section of promises) {
      expect(section).toContain('\nLimits:\n')
      expect(section).toMatch(/\nChecked by: contract `/)
    }
  })

  it('names groups of the contract suite that are there', () => {
    const everything = {
      push: true,
      clock: 'server',
      keepsFreeRecords: true,
      raw: [],
      unreachable: true,
    } as const
    const groups = new Set(
      driverContract({
        name: 'any',
        expects: everything,
        open: () => Promise.reject(new Error('not opened')),
      }).map(({ group }) => group),
    )
    const named = promises.flatMap((section) => {
      const list = /\nChecked by: contract ([^;.]+)/.exec(section)?.[1] ?? ''
      return [...list.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    })
    expect(named.filter((name) => !groups.has(name))).toEqual([])
  })
})

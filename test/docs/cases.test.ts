import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { tableRows } from './tables.ts'

const known = [
  ...'N1 N2 N3 N4 N5 N6 N7 N8 N9 N11 N12 N15 N17 N18 N19 N20 N21 N23 N24 N25 N26 N27 N28 N29 N32 N33'.split(
    ' ',
  ),
  ...'N34 N35 N36 N37 N38 N39 N40 N41 N44 N45 N46 N47 N48 N49 N50 N51 N52 N53 N56 N57 N58 N59 N60 N61'.split(
    ' ',
  ),
  ...'N62 N63 N64 N65 N66 N67 M1 M2 M3 M4 M6 M7 M8 M9 M10 M11 M13 M14 M16 M17 M18 M19 M20 M21 M22 M23'.split(
    ' ',
  ),
  ...'M24 M26 M27 M28 M29 M30 M31 M32 M34 M35 M36 M38 M39 M40'.split(' '),
]

const shown = tableRows('docs/cases.md', ['case', 'what goes wrong', 'what is right', 'shown by'])
const later = tableRows('docs/cases.md', ['case', 'what goes wrong', 'why not yet'])
const named = [...shown, ...later].map(([id = '']) => id)

describe('docs/cases.md', () => {
  it('has each case once, shown or with the reason why not yet', () => {
    expect(named.toSorted()).toEqual(known.toSorted())
  })

  it.each(shown.map(([id = '', , , files = '']) => [id, files]))('%s is shown by %s', (id, files) => {
    const paths = [...files.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    expect(paths.length).toBeGreaterThan(0)
    expect(paths.filter((path) => !casesIn(titles(path)).has(id))).toEqual([])
  })

  it.each(later.map(([id = '']) => id))(
    '%s, which is for later, is claimed by no test of the others',
    (id) => {
      const files = new Set(
        shown.flatMap(([, , , list = '']) => [...list.matchAll(/`([^`]+)`/g)].map(([, path]) => path)),
      )
      expect([...files].filter((path) => casesIn(titles(path ?? '')).has(id))).toEqual([])
    },
  )
})

describe('the titles of tests', () => {
  it('name no case that nobody knows', () => {
    const files = ['test', 'src/testing'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts'))
        .map((path) => `${folder}/${path}`),
    )
    const unknown = files.flatMap((path) =>
      [...casesIn(titles(path))].filter((id) => !known.includes(id)).map((id) => `${path}: ${id}`),
    )
    expect(unknown).toEqual([])
  })
})

describe('the cases of a test', () => {
  it('are those in parentheses in its title, not those in comments or elsewhere in the text', () => {
    const source = `// (N1)\n * as in (N2)\nit('is fine, N3 (N4, M4; %s)', () => call(N6))\nit("too (N7)", ['N8'])`
    expect([...casesIn(titlesOf(source))]).toEqual(['N4', 'M4', 'N7'])
  })
})

function titles(path: string): readonly string[] {
  return titlesOf(readFileSync(join(root, path), 'utf8'))
}

/** Every text in quotes outside comments; a title is one of them. */
function titlesOf(source: string): readonly string[] {
  const lines = source.split('\n').filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line))
  return lines.flatMap((line) => [...line.matchAll(/'[^']*'|"[^"]*"|`[^`]*`/g)].map(([text]) => text))
}

function casesIn(texts: readonly string[]): ReadonlySet<string> {
  const lists = texts.flatMap((text) => [...text.matchAll(/\(([^()]*)\)/g)].map(([, list = '']) => list))
  return new Set(lists.flatMap((list) => list.match(/\b[NM]\d+\b/g) ?? []))
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { modelChecks } from '../../scripts/model-checks.mjs'
import { root } from '../../scripts/root.mjs'
import { tableRows } from './tables.ts'

const page = 'model/README.md'
const source = readdirSync(join(root, 'model'))
  .filter((name) => name.endsWith('.pml'))
  .map((name) => readFileSync(join(root, 'model', name), 'utf8'))
  .join('\n')
const switches = new Set(
  [...source.matchAll(/\b(?:ifdef|ifndef|defined\()\s*(\w+)/g)].map(([, name]) => name),
)

it('model/README.md has a row for each check that has to hold, and no other', () => {
  const rows = tableRows(page, ['check', 'what holds in every state, and what was left out'])
  const checks = modelChecks.filter(({ expected }) => expected === 'holds')
  expect(rows.map(([name]) => `${name}`).toSorted()).toEqual(
    checks.map(({ name }) => `\`${name}\``).toSorted(),
  )
})

it('model/README.md has a row for each flaw that is planted, with what it breaks, and no other', () => {
  const rows = tableRows(page, ['check', 'the flaw', 'what breaks'])
  const flaws = modelChecks.filter(({ expected }) => expected !== 'holds')
  expect(rows.map(([name, , broken]) => `${name} breaks: ${broken}`).toSorted()).toEqual(
    flaws.map(({ name, expected }) => `\`${name}\` ${expected}`).toSorted(),
  )
})

it('every check switches on only what the model knows', () => {
  for (const { name, defines } of modelChecks) {
    expect(
      defines.map((define) => define.split('=')[0]).filter((define) => !switches.has(define)),
      name,
    ).toEqual([])
  }
})

it('every switch of the model is tried by some check', () => {
  const tried = new Set(modelChecks.flatMap(({ defines }) => defines.map((define) => define.split('=')[0])))
  expect([...switches].filter((name) => !tried.has(name))).toEqual([])
})

it('every promise that a flaw breaks is demanded by the model', () => {
  for (const { name, expected } of modelChecks) {
    const broken = expected.replace('breaks: ', '')
    if (expected !== 'holds')
      expect(source, name).toMatch(new RegExp(`BROKEN: ${broken}\\\\n|ltl ${broken} `))
  }
})

it('docs/guarantees.md names only checks that are there', () => {
  const text = readFileSync(join(root, 'docs/guarantees.md'), 'utf8')
  const named = [...text.matchAll(/`((?:lease|slots): [^`]+)`/g)].map(([, name]) => name)
  expect(named).not.toEqual([])
  expect(named.filter((name) => !modelChecks.some((check) => check.name === name))).toEqual([])
})

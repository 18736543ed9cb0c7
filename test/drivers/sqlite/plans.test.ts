import { expect, test } from 'vitest'
import { schemaSql, sqliteTables } from '../../../src/drivers/sqlite/schema.sql.ts'
import { sqliteStatements } from '../../../src/drivers/sqlite/statements.ts'
import { freshPath, openRaw } from './sqlite-store.ts'

const tables = sqliteTables('leasehold_')
const statements = Object.entries(sqliteStatements(tables)).flatMap(([group, texts]) =>
  Object.entries(texts as Record<string, string>).map(([name, sql]) => [`${group}.${name}`, sql] as const),
)

test.for(statements)('%s finds its rows by an index', ([, sql]) => {
  const database = openRaw(freshPath())
  database.exec(schemaSql(tables))
  const values = Array.from({ length: sql.split('?').length - 1 }, () => 1)
  const plan = database.prepare(`explain query plan ${sql}`).all(...values) as { readonly detail: string }[]
  const steps = plan.map((step) => step.detail)
  // A plain insert has no plan at all; whatever has one must search, and in the order that it needs.
  if (!/insert/i.test(sql)) expect(steps.join('\n')).toContain('SEARCH')
  expect(steps.filter((step) => step.startsWith('SCAN'))).toEqual([])
  expect(steps.filter((step) => step.includes('TEMP B-TREE'))).toEqual([])
})

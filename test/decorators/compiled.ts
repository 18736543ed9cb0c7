import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../scripts/root.mjs'

export type Fixtures = typeof import('./fixtures/decorated.ts')

export const kinds = { 'TC39 decorators': false, experimentalDecorators: true } as const

/** The fixtures as the compiler makes them for one kind of decorators: vitest itself lowers none of TC39's. */
export async function compileFixtures(kind: keyof typeof kinds): Promise<{
  readonly fixtures: Fixtures
  remove(): Promise<void>
}> {
  const setup = join(root, '.setup')
  await mkdir(setup, { recursive: true })
  const folder = await mkdtemp(join(setup, 'decorators-'))
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const args = ['-p', join(root, 'test', 'decorators', 'fixtures'), '--outDir', folder]
  await promisify(execFile)(process.execPath, [
    compiler,
    ...args,
    '--experimentalDecorators',
    String(kinds[kind]),
  ]).catch((error: { stdout: string }) => {
    throw new Error(error.stdout)
  })
  return {
    fixtures: (await import(join(folder, 'decorated.js'))) as Fixtures,
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

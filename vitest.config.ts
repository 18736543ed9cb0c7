import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

export default defineConfig({
  resolve: {
    // The package's own name means the source in tests, and dist everywhere else.
    alias: [
      { find: /^leasehold$/, replacement: source('index.ts') },
      { find: /^leasehold\/(driver|integrations|nestjs|testing)$/, replacement: source('$1/index.ts') },
      { find: /^leasehold\/(memory|sqlite|postgres|redis)$/, replacement: source('drivers/$1/index.ts') },
    ],
  },
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    include: ['test/**/*.test.ts'],
    // Minutes of real processes under faults: only when asked for, with LEASEHOLD_TORTURE=planted.
    exclude: process.env['LEASEHOLD_TORTURE'] === 'planted' ? [] : ['test/torture/planted-bugs.test.ts'],
    pool: 'forks',
    // Most tests wait for a store or a timer: a small machine runs two files at a time as well.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 60_000,
    hookTimeout: 30_000,
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
})

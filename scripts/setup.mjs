// What a fresh clone needs before anything of it can run. Plain JavaScript on Node.js' own modules, and called by
// the scripts themselves: lifecycle scripts (pretest, predemo) are skipped for users who set ignore-scripts.
import { join } from 'node:path'
import { compile } from './compile.mjs'
import { exclusively } from './exclusively.mjs'
import { installDependencies, installSqlite } from './install.mjs'
import { requireNodeVersion } from './node-version.mjs'
import { root } from './root.mjs'

const stateFolder = join(root, '.setup')

/**
 * Installs and compiles what is missing or out of date; says on stderr what it does, and nothing if there is nothing
 * to do. Ends the process with a message if that fails.
 * @param {object} [options]
 * @param {boolean} [options.sqlite] whether an SQLite client is needed
 * @param {'stale' | 'always' | 'never'} [options.compiles] `'stale'`: only what is out of date
 */
export async function setup({ sqlite = true, compiles = 'stale' } = {}) {
  requireNodeVersion()
  await exclusively(stateFolder, async () => {
    await installDependencies()
    if (sqlite) await installSqlite()
    if (compiles !== 'never') await compile({ stateFolder, always: compiles === 'always' })
  })
}

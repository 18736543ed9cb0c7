import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exclusively } from './exclusively.mjs'
import { npm } from './npm.mjs'
import { root } from './root.mjs'
import { fail } from './run.mjs'

const manifests = ['package.json', 'package-lock.json', '.npmrc', 'load.mjs']

/**
 * Installs what bench/package-lock.json names, unless it is there: in a folder of its own, so that neither the tests nor the
 * tools ever meet it. Ends the process with a message if that fails.
 * @returns {Promise<string>} the module that loads them
 */
export async function installPeers() {
  const folder = join(root, '.setup', 'bench')
  await exclusively(folder, async () => {
    const stamp = join(folder, 'installed')
    const wanted = manifests.map((name) => readFileSync(join(root, 'bench', name), 'utf8')).join('\0')
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
    console.error('Installing what is measured beside Leasehold (npm ci, about 10 s) …')
    rmSync(stamp, { force: true })
    mkdirSync(folder, { recursive: true })
    for (const name of manifests) copyFileSync(join(root, 'bench', name), join(folder, name))
    const options = ['--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const code = await npm('ci', '--prefix', folder, ...options)
    if (code !== 0) fail(`npm ci failed with exit code ${code}. Is the npm registry reachable?`)
    writeFileSync(stamp, wanted)
  })
  return join(folder, 'load.mjs')
}

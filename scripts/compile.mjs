import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bundle } from './bundle.mjs'
import { root } from './root.mjs'
import { fail, runNode } from './run.mjs'

/**
 * @typedef {object} Target
 * @property {string} project
 * @property {string} output
 * @property {string} base what the paths in `output` are relative to
 * @property {string[]} sources its own folders; those that do not exist are skipped
 * @property {string[]} reads what else it depends on
 * @property {() => Promise<void>} [write] empties the output and writes programs, where the compiler writes only declarations
 */

/** @type {Target[]} */
const targets = [
  {
    project: 'tsconfig.build.json',
    output: 'dist',
    base: 'src',
    sources: ['src'],
    reads: ['package.json', 'scripts/bundle.mjs'],
    write: bundle,
  },
  {
    project: 'tsconfig.programs.json',
    output: 'dist-programs',
    base: '',
    sources: ['bench', 'examples', 'test/programs', 'torture', 'simulator'],
    reads: [
      'src',
      'test/core/virtual-time.ts',
      'test/integrations/second-by-second.ts',
      'test/support',
      'scripts/servers',
      'tsconfig.build.json',
    ],
  },
]

/**
 * Compiles src into dist, and the programs that run on it (the examples, what tests spawn) into dist-programs.
 * A target whose sources are older than its last build is left alone, unless `always`.
 * @param {{ stateFolder: string, always?: boolean }} options
 */
export async function compile({ stateFolder, always = false }) {
  for (const target of targets) {
    const stamp = join(stateFolder, target.output)
    if (!target.sources.some((folder) => existsSync(join(root, folder)))) continue
    if (!always && isFresh(target, stamp)) continue
    console.error(`Compiling ${target.sources.join(', ')} …`)
    const startedAt = new Date()
    if (target.write === undefined) removeOrphans(target, '')
    else await target.write()
    const code = await runNode([join('node_modules', 'typescript', 'bin', 'tsc'), '-p', target.project])
    if (code !== 0) fail(`${target.project} does not compile: see above.`)
    mkdirSync(dirname(stamp), { recursive: true })
    writeFileSync(stamp, '')
    utimesSync(stamp, startedAt, startedAt)
  }
}

/**
 * @param {Target} target
 * @param {string} stamp
 */
function isFresh({ project, output, sources, reads }, stamp) {
  if (!existsSync(stamp) || !existsSync(join(root, output))) return false
  const newest = Math.max(...[project, ...sources, ...reads].map((path) => newestChange(join(root, path))))
  return newest <= statSync(stamp).mtimeMs
}

/**
 * The last change of a file, or of anything in a folder; the folders count too, as they change by a deletion.
 * @param {string} path
 * @returns {number}
 */
function newestChange(path) {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 0
  const inside = stats.isDirectory() ? readdirSync(path).map((name) => newestChange(join(path, name))) : []
  return Math.max(stats.mtimeMs, ...inside)
}

/**
 * Deletes what was compiled from a source that is gone: it would still be published.
 * @param {Target} target
 * @param {string} folder
 */
function removeOrphans(target, folder) {
  const output = join(root, target.output, folder)
  if (!existsSync(output)) return
  for (const entry of readdirSync(output, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const source = join(root, target.base, path.replace(/(\.d)?\.([cm]?)[jt]s$/, '.$2ts'))
    if (!existsSync(source)) rmSync(join(output, entry.name), { recursive: true })
    else if (entry.isDirectory()) removeOrphans(target, path)
  }
}

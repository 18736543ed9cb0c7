// npm run check: everything that is checked without running the library. A line per step; the output of those that fail.
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { endWithNpm } from './end-with-npm.mjs'
import { npmProgram } from './npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {() => string[]} command arguments of Node.js
 * @property {boolean} [isShown] whether its output is of interest when it passes, too
 */

endWithNpm()
process.chdir(root)
await setup({ sqlite: false, compiles: 'never' })

const packed = join(root, '.setup', 'packed')
const tarball = () => join(packed, readdirSync(packed)[0] ?? 'nothing-packed')
rmSync(packed, { recursive: true, force: true })
mkdirSync(packed, { recursive: true })

/** @type {Step} */
const build = { name: 'build', command: () => ['scripts/build.mjs'] }

/** @type {Step} */
const pack = {
  name: 'pack',
  command: () => [npmProgram(), 'pack', '--ignore-scripts', '--silent', '--pack-destination', packed],
}

/** The slow ones first: two run at a time. @type {Step[]} */
const steps = [
  {
    name: 'types of the package (attw)',
    command: () => [
      bin('@arethetypeswrong/cli', 'dist/index.js'),
      tarball(),
      '--profile',
      'esm-only',
      '--no-emoji',
    ],
  },
  {
    name: 'types of tests, examples, scripts',
    command: () => [bin('typescript', 'bin/tsc'), '-p', 'tsconfig.json'],
  },
  {
    name: 'types of tests with decorators of Nest',
    command: () => [bin('typescript', 'bin/tsc'), '-p', join('test', 'nestjs')],
  },
  { name: 'lint', command: () => [bin('oxlint', 'bin/oxlint'), '--deny-warnings'] },
  { name: 'unused code and dependencies', command: () => [bin('knip', 'bin/knip.js'), '--no-progress'] },
  { name: 'size budgets', command: () => ['scripts/checks/sizes.mjs'], isShown: true },
  {
    name: 'package.json of the package (publint)',
    command: () => [bin('publint', 'src/cli.js'), 'run', tarball(), '--strict'],
  },
  { name: 'format', command: () => [bin('oxfmt', 'bin/oxfmt'), '--check', '.'] },
  { name: 'layers', command: () => ['scripts/checks/layers.mjs'] },
  { name: 'lock file', command: () => ['scripts/checks/lock-file.mjs'] },
]

/** Alone, so that the others don't slow it down. @type {Step} */
const footprint = {
  name: 'footprint',
  command: () => ['scripts/checks/footprint.mjs', tarball()],
  isShown: true,
}

/** @type {string[]} */
const failed = []
await run(build)
await run(pack)
await Promise.all([worker(), worker()])
await run(footprint)
console.log(failed.length === 0 ? 'All checks passed' : `Failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1

async function worker() {
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) await run(step)
}

/** @param {Step} step */
async function run({ name, command, isShown = false }) {
  const startedAt = performance.now()
  const { code, output } = await capture(command())
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
  if (code !== 0) failed.push(name)
  if (code !== 0 || isShown) console.log(stripVTControlCharacters(output).trim().replaceAll(/^/gm, '     '))
}

/**
 * @param {string[]} args
 * @returns {Promise<{ code: number, output: string }>}
 */
function capture(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

/**
 * @param {string} name
 * @param {string} path
 */
function bin(name, path) {
  return join('node_modules', name, path)
}

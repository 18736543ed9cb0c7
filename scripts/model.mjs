// npm run model: checks the model of the protocol (model/) with Spin, and that planted flaws break it. Arguments:
// --trails prints how; words choose checks by their names (npm run model -- slots DEADLINE_PLUS_TTL).
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { endWithNpm } from './end-with-npm.mjs'
import { modelChecks } from './model-checks.mjs'
import { root } from './root.mjs'
import { programFolder, ProgramMissingError } from './servers/programs.mjs'

/** @typedef {import('./model-checks.mjs').ModelCheck} ModelCheck */

/**
 * @typedef {object} Result
 * @property {string} verdict `holds`, the property that is broken, or why there is no telling
 * @property {number} states
 * @property {number} seconds
 * @property {string[]} trail the steps that lead to the broken property
 */

const nothing = { states: 0, seconds: 0, trail: [] }

/** What the messages of those steps say that only a fault makes possible, which some checks leave out. */
const stepsOfFault = {
  'LOST=0': /gets no answer|its release is lost/,
  'STRAYS=0': /still on its way|stray|comes in twice/,
  'CRASHES=0': /crashes/,
}

endWithNpm()
const words = process.argv.slice(2)
const showsTrails = words.includes('--trails')
const chosen = modelChecks.filter(({ name }) =>
  words.every((word) => word.startsWith('--') || name.includes(word)),
)
if (isRunnable()) await checkAll()

function isRunnable() {
  try {
    for (const program of /** @type {const} */ (['spin', 'gcc'])) programFolder(program)
    return true
  } catch (error) {
    if (!(error instanceof ProgramMissingError)) throw error
    console.error(`The model is not checked: ${error.message}.`)
    process.exitCode = process.env['CI'] === 'true' ? 1 : 0
    return false
  }
}

async function checkAll() {
  const startedAt = performance.now()
  const queue = [...chosen.entries()]
  const failed = /** @type {string[]} */ ([])
  console.log(row('', 'check', 'expected', 'actual', 'states', 'time'))
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, check] = next
      const result = await run(check, join(root, '.setup', 'model', String(index)))
      const isAsExpected = result.verdict === check.expected
      if (!isAsExpected) failed.push(check.name)
      const { verdict, states, seconds, trail } = result
      const [mark, time] = [isAsExpected ? 'ok' : 'FAIL', `${seconds.toFixed(1)} s`]
      console.log(row(mark, check.name, check.expected, verdict, states.toLocaleString('en'), time))
      if (showsTrails || !isAsExpected) for (const step of trail) console.log(`       ${step}`)
    }
  }
  await Promise.all([worker(), worker()])
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  console.log(
    failed.length === 0
      ? `${chosen.length} checks as expected, in ${seconds} s`
      : `Not as expected: ${failed.join('; ')}`,
  )
  process.exitCode = failed.length === 0 && chosen.length > 0 ? 0 : 1
}

/**
 * Generates a verifier, compiles and runs it: every state, none left out.
 * @param {ModelCheck} check
 * @param {string} folder
 * @returns {Promise<Result>}
 */
async function run({ model, defines, formula, expected }, folder) {
  const startedAt = performance.now()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(join(root, 'model')))
    if (name !== 'README.md') copyFileSync(join(root, 'model', name), join(folder, name))
  const file = `${model}.pml`
  const flags = defines.map((define) => `-D${define}`)
  const isFlawed = expected !== 'holds'

  const generated = await capture('spin', ['-a', ...flags, file], folder)
  if (!existsSync(join(folder, 'pan.c'))) return { ...nothing, verdict: `no model: ${generated}` }
  // Breadth first, a flaw is shown in as few steps as it takes. Formulas need the depth and weak fairness.
  const safety = ['-DSAFETY', '-DNOCLAIM', isFlawed ? '-DBFS' : '-DNOREDUCE']
  const kind = formula === undefined ? safety : ['-DNOREDUCE', '-DNFAIR=3']
  const compiled = await capture(
    'gcc',
    ['-w', isFlawed ? '-O1' : '-O2', ...kind, '-DPRINTF', '-include', 'steps.h', '-o', 'pan', 'pan.c'],
    folder,
  )
  if (!existsSync(join(folder, 'pan'))) return { ...nothing, verdict: `no verifier: ${compiled}` }
  const fair = formula === undefined ? [] : ['-a', '-f', '-N', formula]
  const output = await capture('./pan', [...fair, '-m200000', '-w22'], folder)

  const untaken = isFlawed ? [] : untakenSteps(output, defines, folder)
  const trail = existsSync(join(folder, `${file}.trail`))
    ? stepsOf(await capture('spin', ['-t', '-T', ...flags, file], folder))
    : []
  rmSync(folder, { recursive: true, force: true })
  return {
    verdict: untaken.length === 0 ? verdictOf(output, trail, formula) : `never takes: ${untaken.join('; ')}`,
    states: Number(/(\d+) states, stored/.exec(output)?.[1] ?? 0),
    seconds: (performance.now() - startedAt) / 1000,
    trail,
  }
}

/**
 * @param {string} output of the verifier
 * @param {string[]} trail
 * @param {string | undefined} formula
 */
function verdictOf(output, trail, formula) {
  if (/acceptance cycle/.test(output)) return `breaks: ${formula}`
  if (/assertion violated/.test(output)) return `breaks: ${trail.at(-1) ?? 'an assertion'}`
  const isComplete =
    /errors: 0/.test(output) && !/not completed|too small|out of memory|hash.?table is full/i.test(output)
  return isComplete ? 'holds' : `no telling: ${output.trim().slice(-300)}`
}

/**
 * Steps that the model has and no state of a sound run allows: a property that holds because nothing happens proves
 * nothing.
 * @param {string} output of the verifier, with what steps.h adds to it
 * @param {string[]} defines
 * @param {string} folder
 */
function untakenSteps(output, defines, folder) {
  const excused = Object.entries(stepsOfFault).filter(([define]) => defines.includes(define))
  const taken = new Set(output.split('\n').map((line) => line.replace(/^took: /, '')))
  return [...messagesIn(folder)].filter(
    (message) => !taken.has(message) && !excused.some(([, fault]) => fault.test(message)),
  )
}

/** @param {string} folder */
function messagesIn(folder) {
  const source = readdirSync(folder).filter((name) => /^pan\.[a-z]$/.test(name))
  const text = source.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n')
  const messages = [...text.matchAll(/Printf\("([^"\\]+)\\n"/g)].map(([, message = '']) => message)
  return new Set(messages.filter((message) => !message.startsWith('BROKEN: ')))
}

/**
 * What the model printed on its way, up to the name of the broken property.
 * @param {string} output of the simulator that followed the trail
 */
function stepsOf(output) {
  const lines = output
    .split('\n')
    .map((line) => line.trim().replace('<<<<<START OF CYCLE>>>>>', 'from here on, again and again:'))
    .filter((line) => line !== '' && !/^(ltl|spin:|Never claim|Starting)/.test(line))
  const broken = lines.findIndex((line) => line.startsWith('BROKEN: '))
  if (broken !== -1) return [...lines.slice(0, broken), (lines[broken] ?? '').replace('BROKEN: ', '')]
  const end = lines.findIndex((line) => /^(#processes|phase\[0\])/.test(line))
  return end === -1 ? lines : lines.slice(0, end)
}

/** @param {string[]} cells */
function row(...cells) {
  const [mark = '', name = '', expected = '', actual = '', states = '', time = ''] = cells
  return `${mark.padEnd(4)} ${name.padEnd(44)} ${expected.padEnd(60)} ${actual === expected ? 'same'.padEnd(6) : actual.padEnd(6)} ${states.padStart(10)} ${time.padStart(7)}`
}

/**
 * The output of a program, whatever its exit code.
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<string>}
 */
function capture(program, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const end = () => child.kill()
    process.once('exit', end)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.once('error', reject)
    child.once('close', () => {
      process.off('exit', end)
      resolve(output)
    })
  })
}

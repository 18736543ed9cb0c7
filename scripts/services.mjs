// npm run services: starts redis and PostgreSQL for experiments and prints their URLs; they end with Ctrl-C.
// npm run services -- redis -- <command>: starts only the named ones, runs the command with REDIS_URL and
// POSTGRES_URL in its environment, and ends with it and its exit code.
import { spawn } from 'node:child_process'
import { endWithNpm } from './end-with-npm.mjs'
import { requireNodeVersion } from './node-version.mjs'
import { fail } from './run.mjs'
import { startPostgres } from './servers/postgres.mjs'
import { ProgramMissingError } from './servers/programs.mjs'
import { startRedis } from './servers/redis.mjs'

const starters = { redis: startRedis, postgres: startPostgres }

requireNodeVersion()
endWithNpm()
const { stores, command } = parseArguments(process.argv.slice(2))
const urls = Object.fromEntries(await Promise.all(stores.map(start)))
for (const [name, url] of Object.entries(urls)) console.error(`${name}=${url}`)

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.once(signal, () => process.exit())
if (command.length === 0) {
  console.error('Running until Ctrl-C; the data is thrown away.')
  setInterval(() => {}, 2 ** 30)
} else {
  const child = spawn(command[0] ?? '', command.slice(1), {
    stdio: 'inherit',
    env: { ...process.env, ...urls },
  })
  process.once('exit', () => child.kill())
  child.once('error', (error) => fail(error.message))
  child.once('exit', (code) => process.exit(code ?? 1))
}

/** @param {string[]} args */
function parseArguments(args) {
  const separator = args.indexOf('--')
  const named = separator === -1 ? args : args.slice(0, separator)
  const unknown = named.find((name) => !Object.hasOwn(starters, name))
  if (unknown !== undefined)
    fail(`Unknown service ${unknown}: it is one of ${Object.keys(starters).join(', ')}.`)
  return {
    stores: /** @type {(keyof typeof starters)[]} */ (named.length === 0 ? Object.keys(starters) : named),
    command: separator === -1 ? [] : args.slice(separator + 1),
  }
}

/** @param {keyof typeof starters} store */
async function start(store) {
  try {
    const { url } = await starters[store]()
    return [`${store.toUpperCase()}_URL`, url]
  } catch (error) {
    if (error instanceof ProgramMissingError) fail(error.message)
    throw error
  }
}

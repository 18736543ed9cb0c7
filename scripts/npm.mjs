import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fail, runNode } from './run.mjs'

/**
 * Runs npm with this very Node.js, whether or not we were started by npm, and resolves with its exit code.
 * @param {string[]} args
 */
export function npm(...args) {
  return runNode([npmProgram(), ...args])
}

export function npmProgram() {
  const startedBy = process.env['npm_execpath']
  if (startedBy?.endsWith('npm-cli.js')) return startedBy
  const bin = dirname(process.execPath)
  const places = [
    join(bin, '..', 'lib', 'node_modules'),
    join(bin, 'node_modules'),
    '/usr/share/nodejs',
    '/usr/lib/node_modules',
  ]
  const found = places
    .map((place) => join(place, 'npm', 'bin', 'npm-cli.js'))
    .find((path) => existsSync(path))
  return found ?? fail('npm was not found beside Node.js: start this with npm (npm run demo, npm test).')
}

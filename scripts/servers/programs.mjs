// Finds the programs that the tests, the demo and the model need, and installs them where that is allowed.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** @typedef {'redis-server' | 'postgres' | 'pgbouncer' | 'spin' | 'gcc'} ProgramName */

/** A program is not there and could not be installed. `code` is 'LEASEHOLD_PROGRAM_MISSING'. */
export class ProgramMissingError extends Error {
  code = 'LEASEHOLD_PROGRAM_MISSING'
  /** @param {ProgramName} program */
  constructor(program) {
    const debianPackage = packages[program]
    super(
      `${program} is not installed: install it (Debian, Ubuntu: apt-get install ${debianPackage}) or put it on the PATH`,
    )
    this.name = 'ProgramMissingError'
    this.program = program
  }
}

/** @type {Record<ProgramName, string>} */
const packages = {
  'redis-server': 'redis-server',
  postgres: 'postgresql',
  pgbouncer: 'pgbouncer',
  spin: 'spin',
  gcc: 'build-essential',
}

/**
 * The folder that holds `program`, installing it first when we are root on Debian or Ubuntu.
 * @param {ProgramName} program
 * @returns {string}
 */
export function programFolder(program) {
  const found = findFolder(program)
  if (found !== undefined) return found
  if (mayInstall()) install(program)
  const installed = findFolder(program)
  if (installed === undefined) throw new ProgramMissingError(program)
  return installed
}

/**
 * @param {ProgramName} program
 * @returns {string | undefined}
 */
function findFolder(program) {
  // Debian keeps the servers off the PATH, and a postgres on the PATH may come without its initdb.
  const needed = program === 'postgres' ? ['postgres', 'initdb'] : [program]
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  if (program === 'postgres') folders.unshift(...postgresFolders())
  // Where Debian puts it; only root has that on the PATH.
  if (program === 'pgbouncer') folders.push('/usr/sbin', '/usr/local/sbin')
  return folders.find((folder) => needed.every((name) => isExecutable(join(folder, name))))
}

function postgresFolders() {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).filter((name) => /^\d+$/.test(name)) : []
  return versions.toSorted((a, b) => Number(b) - Number(a)).map((version) => join(root, version, 'bin'))
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function mayInstall() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get')
}

/** @param {ProgramName} program */
function install(program) {
  const name = packages[program]
  console.error(`${program} is not here: installing the Debian package ${name} with apt-get`)
  withoutStartingDaemons(() => {
    if (aptGet('install', '--no-install-recommends', name)) return
    aptGet('update')
    aptGet('install', '--no-install-recommends', name)
  })
}

/** @param {string[]} args */
function aptGet(...args) {
  const options = ['-y', '-qq', '-o', 'DPkg::Lock::Timeout=180', '-o', 'Dpkg::Use-Pty=0']
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return spawnSync('apt-get', [...options, ...args], { stdio: ['ignore', 2, 2], env }).status === 0
}

/**
 * Debian's packages start their service as soon as they are installed, unless this policy file refuses.
 * @param {() => void} action
 */
function withoutStartingDaemons(action) {
  const policy = '/usr/sbin/policy-rc.d'
  if (existsSync(policy)) return action()
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' })
  try {
    action()
  } finally {
    rmSync(policy, { force: true })
  }
}

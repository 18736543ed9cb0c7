import { readFileSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { join } from 'node:path'
import { npm } from './npm.mjs'
import { root } from './root.mjs'
import { fail } from './run.mjs'

/** Installs what package-lock.json names, unless it is there. Nothing of the dependencies is executed. */
export async function installDependencies() {
  if (isInstalled()) return
  console.error('Installing the dependencies (npm ci, about 20 s) …')
  // NODE_ENV=production leaves the tools out unless they are asked for; install scripts are run by name below.
  const code = await npm(
    'ci',
    '--include=dev',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  )
  if (code !== 0) {
    fail(
      `npm ci failed with exit code ${code}. Is the npm registry reachable? Offline, nothing can be installed; run "npm ci" for the details.`,
    )
  }
}

/**
 * Makes an SQLite client usable: Node.js from 22.13 on brings one, older ones need a native module.
 */
export async function installSqlite() {
  if (isBuiltin('node:sqlite') || isLoadable()) return
  console.error(
    'Preparing better-sqlite3: about 90 s if it has to be compiled, once (Node.js 22.13 and later does without) …',
  )
  const code = await npm('rebuild', 'better-sqlite3', '--ignore-scripts=false', '--loglevel=error')
  if (code === 0 && isLoadable()) return
  fail(
    `better-sqlite3 could neither be downloaded nor compiled for Node.js ${process.versions.node}. Install a compiler ` +
      '(Debian, Ubuntu: apt-get install build-essential python3), or use Node.js 22.13 or later, which has SQLite built in.',
  )
}

function isLoadable() {
  try {
    const Database = createRequire(join(root, 'package.json'))('better-sqlite3')
    new Database(':memory:').close()
    return true
  } catch {
    return false
  }
}

/** npm notes in node_modules what it has installed: every package that is not optional has to be in it. */
function isInstalled() {
  try {
    const wanted = packagesOf('package-lock.json')
    const present = packagesOf(join('node_modules', '.package-lock.json'))
    return Object.entries(wanted).every(([path, entry]) => path === '' || isThere(entry, present[path]))
  } catch {
    return false
  }
}

/** @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean, peer?: boolean }} LockEntry */

/**
 * @param {LockEntry} wanted
 * @param {LockEntry | undefined} present
 */
function isThere(wanted, present) {
  if (present === undefined) return wanted.optional === true || wanted.devOptional === true
  return present.version === wanted.version && present.integrity === wanted.integrity
}

/**
 * @param {string} path
 * @returns {Record<string, LockEntry>}
 */
function packagesOf(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8')).packages
}

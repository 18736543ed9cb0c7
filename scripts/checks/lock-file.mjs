// The lock file works with whatever registry a user has: it names none. And every install script is allowed by name.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../root.mjs'

const { allowScripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))

/** @type {string[]} */
const broken = []
for (const [path, entry] of Object.entries(packages)) {
  if (!path.startsWith('node_modules/') || entry.link === true) continue
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  if (entry.resolved !== undefined)
    broken.push(`${name}: no registry host in the lock file (resolved: ${entry.resolved})`)
  if (entry.integrity === undefined) broken.push(`${name}: every package has an integrity`)
  if (entry.hasInstallScript === true && entry.optional !== true && allowScripts[name] === undefined) {
    broken.push(`${name}: its install script is allowed or refused by name (allowScripts in package.json)`)
  }
}
for (const line of broken) console.log(`package-lock.json: ${line}`)
process.exitCode = broken.length === 0 ? 0 : 1

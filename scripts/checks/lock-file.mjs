// The lock files work with whatever registry a user has: they name none. And every install script is allowed by name.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../root.mjs'

const broken = ['', 'bench/'].flatMap((folder) =>
  brokenRules(folder).map((rule) => `${folder}package-lock.json: ${rule}`),
)
for (const line of broken) console.log(line)
process.exitCode = broken.length === 0 ? 0 : 1

/** @param {string} folder of a package, with a slash at its end */
function brokenRules(folder) {
  const { allowScripts = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const { packages } = JSON.parse(readFileSync(join(root, folder, 'package-lock.json'), 'utf8'))

  /** @type {string[]} */
  const rules = []
  for (const [path, entry] of Object.entries(packages)) {
    if (!path.startsWith('node_modules/') || entry.link === true) continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    if (entry.resolved !== undefined)
      rules.push(`${name}: no registry host in the lock file (resolved: ${entry.resolved})`)
    if (entry.integrity === undefined) rules.push(`${name}: every package has an integrity`)
    if (entry.hasInstallScript === true && entry.optional !== true && allowScripts[name] === undefined) {
      rules.push(`${name}: its install script is allowed or refused by name (allowScripts in package.json)`)
    }
  }
  return rules
}

import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { npmProgram } from '../../scripts/npm.mjs'
import { root } from '../../scripts/root.mjs'

const run = promisify(execFile)

/** Where each version's package.json and lock file are. */
const manifests = { 12: 'examples/nestjs', 11: 'test/nestjs/nest-11' } as const

export type NestVersion = keyof typeof manifests

/**
 * The example application as a user would have it: in a folder of its own, with a Nest of its own and a copy of the built
 * package, compiled by the compiler. What npm installed is kept from run to run.
 *
 * @returns its folder; null if npm cannot install, except with `CI=true`: then it rejects
 */
export async function installApp(version: NestVersion): Promise<string | null> {
  const folder = join(root, '.setup', `nest-${version}`)
  const example = join(root, 'examples/nestjs')
  await mkdir(folder, { recursive: true })
  try {
    await installPackages(folder, join(root, manifests[version]), join(example, '.npmrc'))
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    console.error(`!!! NOT TESTED: the packages of Nest ${version} could not be installed: ${String(error)}`)
    return null
  }
  const installed = join(folder, 'node_modules/leasehold')
  await rm(join(installed, 'dist'), { recursive: true, force: true })
  await cp(join(root, 'dist'), join(installed, 'dist'), { recursive: true })
  await cp(join(root, 'package.json'), join(installed, 'package.json'))
  for (const path of ['src', 'dist']) await rm(join(folder, path), { recursive: true, force: true })
  for (const path of ['src', 'tsconfig.json', 'fleet.mjs']) {
    await cp(join(example, path), join(folder, path), { recursive: true })
  }
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [compiler, '-p', folder]).catch((error: { stdout: string }) => {
    throw new Error(error.stdout)
  })
  return folder
}

/** Leaves alone what the same files have installed. */
async function installPackages(folder: string, manifest: string, npmrc: string): Promise<void> {
  const names = ['package.json', 'package-lock.json']
  const wanted = await Promise.all(names.map((name) => readFile(join(manifest, name), 'utf8')))
  const stamp = join(folder, 'installed.json')
  const installed = await readFile(stamp, 'utf8').catch(() => '')
  if (installed === JSON.stringify(wanted)) return
  await rm(stamp, { force: true })
  for (const [index, name] of names.entries()) await writeFile(join(folder, name), wanted[index] ?? '')
  await cp(npmrc, join(folder, '.npmrc'))
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--omit=dev']
  await run(process.execPath, [npmProgram(), 'ci', ...options], { cwd: folder })
  await writeFile(stamp, JSON.stringify(wanted))
}

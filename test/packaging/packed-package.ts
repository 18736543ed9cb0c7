import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { npmProgram } from '../../scripts/npm.mjs'
import { root } from '../../scripts/root.mjs'

const run = promisify(execFile)

/** An application that has installed the packed package, and nothing of its optional peers. */
export interface Application {
  /** The paths in the tarball. */
  readonly packedFiles: readonly string[]
  /** The specifiers a user may import: `leasehold`, `leasehold/redis`, … */
  readonly entryPoints: readonly string[]
  /** Writes files into the application and runs a Node.js program of it; answers what it printed, parsed as JSON. */
  run(files: Readonly<Record<string, string>>, program: string): Promise<unknown>
  /** Writes files into the application and compiles it as a strict user would; answers the compiler's errors. */
  compile(files: Readonly<Record<string, string>>): Promise<string>
  remove(): Promise<void>
}

export async function installPackedPackage(): Promise<Application> {
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-packaging-'))
  const npm = async (...args: string[]) => {
    const { stdout } = await run(process.execPath, [npmProgram(), ...args, '--ignore-scripts', '--json'], {
      cwd: folder,
    })
    return JSON.parse(stdout) as unknown
  }

  const [packed] = (await npm('pack', root)) as [{ filename: string; files: { path: string }[] }]
  const dependencies = {
    leasehold: `file:${packed.filename}`,
    // Already on this disk: the tests need no registry.
    croner: `file:${join(root, 'node_modules/croner')}`,
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  await npm('install', '--omit=peer', '--offline', '--no-audit', '--no-fund', '--no-package-lock')

  const manifest = await readFile(join(folder, 'node_modules/leasehold/package.json'), 'utf8')
  const { exports } = JSON.parse(manifest) as { exports: Record<string, unknown> }
  const write = async (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  }

  return {
    packedFiles: packed.files.map(({ path }) => path),
    entryPoints: Object.keys(exports)
      .filter((path) => !path.endsWith('.json'))
      .map((path) => path.replace('.', 'leasehold')),
    run: async (files, program) => {
      await write(files)
      const { stdout } = await run(process.execPath, [program], { cwd: folder })
      return JSON.parse(stdout) as unknown
    },
    compile: async (files) => {
      const compilerOptions = {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
        module: 'nodenext',
        target: 'es2023',
        lib: ['es2023', 'esnext.disposable'],
        types: ['node'],
        typeRoots: [join(root, 'node_modules/@types')],
        noEmit: true,
      }
      const project = { compilerOptions, files: Object.keys(files) }
      await write({ ...files, 'tsconfig.json': JSON.stringify(project) })
      const compiler = join(root, 'node_modules/typescript/bin/tsc')
      return run(process.execPath, [compiler, '-p', folder], { cwd: folder }).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      )
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

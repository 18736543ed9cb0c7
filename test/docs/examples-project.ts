import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../scripts/root.mjs'
import type { CodeBlock } from './markdown.ts'

const exec = promisify(execFile)

/** The examples of the documentation, compiled as a strict user would compile them, against the built package. */
export interface ExamplesProject {
  /** What the compiler says against an example, as `page:line: message`. */
  complaintsAbout(example: CodeBlock): readonly string[]
  /**
   * Runs a compiled example on the in-process store until it ends by itself; answers the lines that it printed. One
   * that `serves` gets a SIGTERM after its last statement, and has to end by that.
   */
  run(example: CodeBlock): Promise<readonly string[]>
  remove(): Promise<void>
}

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  module: 'nodenext',
  moduleDetection: 'force',
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  rootDir: '.',
  outDir: 'js',
}

/**
 * Makes the project inside the repository, where `leasehold` means the package itself: its `exports`, and what is in
 * dist. Every example is a module of its own.
 */
export async function compileExamples(examples: readonly CodeBlock[]): Promise<ExamplesProject> {
  if (!existsSync(join(root, 'dist', 'index.d.ts'))) {
    throw new Error('The examples run on the built package. Run: npm run build')
  }
  await mkdir(join(root, '.setup'), { recursive: true })
  const folder = await mkdtemp(join(root, '.setup', 'examples-'))
  for (const example of examples) await writeFile(join(folder, `${nameOf(example)}.ts`), sourceOf(example))
  const files = examples.map((example) => `${nameOf(example)}.ts`)
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  const complaints = await compile(folder)
  return {
    complaintsAbout: (example) =>
      complaints
        .filter(({ name }) => name === nameOf(example))
        .map(({ line, message }) => `${example.page}:${line}: ${message}`),
    run: (example) => run(join(folder, 'js', `${nameOf(example)}.js`)),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** What an example says that it prints: the comments behind its `console.log(…)`. */
export function promisedOutput({ code }: CodeBlock): readonly string[] {
  return [...code.matchAll(/console\.log\(.*\)[ ]+\/\/ (.+)$/gm)].map(([, text = '']) => text)
}

function nameOf({ page, line }: CodeBlock): string {
  return `${page.replaceAll('/', '-')}-${line}`
}

/** On the lines that it has in its page, so that the compiler's positions are the page's. */
function sourceOf({ code, line, setup, directive }: CodeBlock): string {
  const before = setup.split('\n')
  const padding = Array.from({ length: line - 1 - before.length }, () => '')
  const after = directive === 'serves' ? `process.kill(process.pid, 'SIGTERM')` : ''
  return [...before, ...padding, code, after].join('\n')
}

interface Complaint {
  readonly name: string
  readonly line: number
  readonly message: string
}

async function compile(folder: string): Promise<readonly Complaint[]> {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const output = await exec(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
  }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
  const complaints = [...output.matchAll(/^(.+)\.ts\((\d+),\d+\): (.+)$/gm)]
  if (output !== '' && complaints.length === 0) throw new Error(output)
  return complaints.map(([, name = '', line, message = '']) => ({ name, line: Number(line), message }))
}

async function run(program: string): Promise<readonly string[]> {
  const { PATH } = process.env
  const env = { ...(PATH === undefined ? {} : { PATH }), NO_COLOR: '1', LEASEHOLD_URL: 'memory:' }
  const { stdout, stderr } = await exec(process.execPath, [program], { env, timeout: 10_000 })
  if (stderr !== '') throw new Error(`It wrote to stderr: ${stderr}`)
  return stdout.split('\n').filter((line) => line !== '')
}

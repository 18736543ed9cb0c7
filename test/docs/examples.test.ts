import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { compileExamples, type ExamplesProject, promisedOutput } from './examples-project.ts'
import { codeBlocks, readPages } from './markdown.ts'

const examples = readPages()
  .flatMap(codeBlocks)
  .filter(({ language }) => language === 'ts')
const runnable = examples.filter(({ directive }) => directive !== null)

describe('the examples of the documentation', () => {
  let project: ExamplesProject

  beforeAll(async () => {
    project = await compileExamples(examples)
  }, 60_000)

  afterAll(() => project?.remove())

  it.each(examples)('$page:$line compiles', (example) => {
    expect(project.complaintsAbout(example)).toEqual([])
  })

  it.each(runnable)('$page:$line prints what it says, and ends', async (example) => {
    expect(await project.run(example)).toEqual(promisedOutput(example))
  })

  it('are run where they can be: those of the README and of the page about locks', () => {
    for (const page of ['README.md', 'docs/locks.md']) {
      expect(runnable.some((example) => example.page === page)).toBe(true)
    }
  })

  it('say "runs" or "serves", or nothing', () => {
    const odd = runnable.filter(({ directive }) => directive !== 'runs' && directive !== 'serves')
    expect(odd.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  })
})

describe('an example', () => {
  let project: ExamplesProject | undefined

  afterEach(() => project?.remove())

  const example = (code: string, directive: string | null = null) => ({
    page: 'page.md',
    language: 'ts',
    line: 7,
    code,
    directive,
    setup: "import { LockService } from 'leasehold'\nconst locks = new LockService()",
  })

  it('that does not compile is reported by the line of its page', async () => {
    const wrong = example("await locks.acquire('key')\nawait locks.acquire(42)")
    project = await compileExamples([wrong])
    const complaints = project.complaintsAbout(wrong)
    expect(complaints).toEqual([expect.stringContaining('page.md:8: error TS2345')])
  })

  it('that prints something else is noticed', async () => {
    const wrong = example("console.log('one') // two", 'runs')
    project = await compileExamples([wrong])
    const printed = await project.run(wrong)
    expect([printed, promisedOutput(wrong)]).toEqual([['one'], ['two']])
  })

  it('that serves and does not end by SIGTERM itself is noticed', async () => {
    const wrong = example(
      "process.once('SIGTERM', () => process.exit(3))\nsetInterval(() => {}, 1_000)",
      'serves',
    )
    project = await compileExamples([wrong])
    const ended = project.run(wrong)
    await expect(ended).rejects.toMatchObject({ code: 3 })
  })
})

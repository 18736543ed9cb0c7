import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { anchors, type Page, proseLines, readPages } from './markdown.ts'

const pages = readPages()

describe('the documentation', () => {
  it.each(pages)('$path has no dead link', (page) => {
    expect(links(page).flatMap(({ line, target }) => trouble(page, line, target))).toEqual([])
  })

  it.each(pages)('$path names no file of the repository that is not there', (page) => {
    const missing = namedFiles(page).filter(({ path }) => !existsSync(join(root, path)))
    expect(missing.map(({ line, path }) => `${page.path}:${line}: ${path}`)).toEqual([])
  })

  it('can be reached from the README, every page of it', () => {
    const reached = new Set(['README.md'])
    for (const path of reached) {
      const page = pages.find((candidate) => candidate.path === path)
      for (const { target } of page === undefined ? [] : links(page)) {
        if (!isExternal(target)) reached.add(resolve(path, target).path)
      }
    }
    const alone = pages.filter(({ path }) => path.startsWith('docs/') && !reached.has(path))
    expect(alone.map(({ path }) => path)).toEqual([])
  })
})

describe('a link', () => {
  const page = { path: 'docs/README.md', lines: ['# A `heading`, with marks'] }

  it('to a file that is not there is dead', () => {
    expect(trouble(page, 3, 'nowhere.md')).toEqual(['docs/README.md:3: nowhere.md is not there'])
  })

  it('to a heading that is not there is dead', () => {
    expect(trouble(page, 3, '#a-heading-with-marks', [page])).toEqual([])
    expect(trouble(page, 3, '#another', [page])).toEqual(['docs/README.md:3: #another has no such heading'])
  })
})

interface Link {
  readonly line: number
  readonly target: string
}

/** `[text](target)`, outside code. */
function links(page: Page): readonly Link[] {
  return proseLines(page).flatMap((line, index) =>
    [...line.replace(/`[^`]*`/g, '``').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => ({
      line: index + 1,
      target,
    })),
  )
}

/** Paths of ours in inline code. */
function namedFiles(page: Page): readonly { readonly line: number; readonly path: string }[] {
  return proseLines(page).flatMap((line, index) =>
    [...line.matchAll(/`((?:src|test|docs|examples|scripts)\/[\w./-]+)`/g)].map(([, path = '']) => ({
      line: index + 1,
      path,
    })),
  )
}

function trouble(page: Page, line: number, target: string, among: readonly Page[] = pages): string[] {
  const complain = (what: string): string[] => [`${page.path}:${line}: ${target} ${what}`]
  if (isExternal(target)) return target.startsWith('https://') ? [] : complain('is not https')
  const { path, anchor } = resolve(page.path, target)
  if (path.startsWith('..') || !existsSync(join(root, path))) return complain('is not there')
  if (anchor === '') return []
  const goal = among.find((candidate) => candidate.path === path)
  return goal !== undefined && anchors(goal).has(anchor) ? [] : complain('has no such heading')
}

function isExternal(target: string): boolean {
  return /^[a-z]+:/.test(target)
}

function resolve(from: string, target: string): { readonly path: string; readonly anchor: string } {
  const [path = '', anchor = ''] = target.split('#')
  return { path: path === '' ? from : posix.join(posix.dirname(from), path), anchor }
}

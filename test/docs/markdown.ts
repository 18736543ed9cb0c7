import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/root.mjs'

/** One Markdown file of the repository. */
export interface Page {
  /** From the root, with slashes. */
  readonly path: string
  readonly lines: readonly string[]
}

/** A fenced block of code. */
export interface CodeBlock {
  readonly page: string
  readonly language: string
  /** The line of its first line of code, counted from 1. */
  readonly line: number
  readonly code: string
  /** The directive in the HTML comment right before it, such as `runs`; null without one. */
  readonly directive: string | null
  /** The code in the last `<!-- setup` comment before it. */
  readonly setup: string
}

/** README and its siblings at the root, everything below docs, and the README of the model. */
export function readPages(): readonly Page[] {
  const below = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  const paths = [
    ...readdirSync(root),
    ...below.map((path) => `docs/${path.replaceAll('\\', '/')}`),
    'model/README.md',
  ]
  return paths
    .filter((path) => path.endsWith('.md'))
    .toSorted()
    .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n') }))
}

/**
 * The fenced blocks of a page, with what the comments before them say:
 *
 * - `<!-- setup`, lines of code, `-->`: goes before every later block of the page, up to the next setup
 * - `<!-- word -->` on the line before a block: its directive
 */
export function codeBlocks({ path, lines }: Page): readonly CodeBlock[] {
  const blocks: CodeBlock[] = []
  let setup = ''
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if (line === '<!-- setup') {
      const end = lines.indexOf('-->', at)
      if (end < 0) throw new Error(`${path}:${at + 1}: the setup has no end.`)
      setup = lines.slice(at + 1, end).join('\n')
      at = end
      continue
    }
    const fence = /^( *)(`{3,})(\w*)/.exec(line)
    if (fence === null) continue
    const [, indent = '', ticks = '', language = ''] = fence
    const end = lines.indexOf(indent + ticks, at + 1)
    if (end < 0) throw new Error(`${path}:${at + 1}: the block has no end.`)
    const code = lines.slice(at + 1, end).map((inside) => inside.slice(indent.length))
    const directive = /^ *<!-- (\w+) -->$/.exec(lines[at - 1] ?? '')?.[1] ?? null
    blocks.push({ page: path, language, line: at + 2, code: code.join('\n'), directive, setup })
    at = end
  }
  return blocks
}

/** The lines of a page that are prose: those of code blocks and comments are empty, so that the numbers stay. */
export function proseLines({ lines }: Page): readonly string[] {
  let closing: string | null = null
  return lines.map((line) => {
    if (closing !== null) {
      if (line.trim() === closing) closing = null
      return ''
    }
    const opening = /^ *(`{3,}|<!--)/.exec(line)?.[1]
    if (opening === undefined) return line
    if (opening !== '<!--') closing = opening
    else if (!line.includes('-->')) closing = '-->'
    return ''
  })
}

/** What `#…` may follow the path of a page: the anchors that GitHub makes of its headings. */
export function anchors(page: Page): ReadonlySet<string> {
  const found = new Map<string, number>()
  for (const line of proseLines(page)) {
    const heading = /^#{1,6} (.+)$/.exec(line)?.[1]
    if (heading === undefined) continue
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-')
    found.set(anchor, (found.get(anchor) ?? 0) + 1)
  }
  return new Set(
    [...found].flatMap(([anchor, times]) =>
      Array.from({ length: times }, (_, index) => (index === 0 ? anchor : `${anchor}-${index}`)),
    ),
  )
}

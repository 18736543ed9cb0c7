import { proseLines, readPages } from './markdown.ts'

/** The rows of all tables of a page that have these columns, each as its cells. */
export function tableRows(path: string, columns: readonly string[]): readonly (readonly string[])[] {
  const page = readPages().find((candidate) => candidate.path === path)
  if (page === undefined) throw new Error(`There is no ${path}.`)
  const rows: (readonly string[])[] = []
  let isInside = false
  for (const line of proseLines(page)) {
    const cells = /^\| (.+) \|$/.exec(line)?.[1]?.split(' | ')
    if (cells === undefined) isInside = false
    else if (cells.join() === columns.join()) isInside = true
    else if (isInside && !cells.every((cell) => /^-+$/.test(cell))) rows.push(cells)
  }
  return rows
}

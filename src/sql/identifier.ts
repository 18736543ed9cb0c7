import { quoted, requireOption } from '../core/errors.ts'

/**
 * Checks and quotes a table or schema name for use in SQL text.
 *
 * @param option the option's name, for the error
 * @param name 1 to 40 characters: an ASCII letter or underscore first, then letters, digits and underscores. Case is kept.
 * @throws InvalidOptionError for anything else
 */
export function quoteIdentifier(option: string, name: string): string {
  const isFine = typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,39}$/.test(name)
  requireOption(isFine, option, () => {
    const shown = typeof name === 'string' ? quoted(name) : typeof name
    return `1 to 40 letters, digits or underscores and not begin with a digit; got ${shown}`
  })
  return `"${name}"`
}

import { createHash } from 'node:crypto'
import { requireOption } from './errors.ts'
import { holds } from './read-options.ts'

/** The longest key that a store gets to see as it is, in UTF-8 bytes. */
const longestPlain = 255
/** Stored forms that begin with this are hashes; a user's own key that begins with it is hashed like a long one. */
const reservedPrefix = 'sha256:'

/**
 * The form in which a key or namespace travels to any store: short, well-formed text as it is; anything longer than
 * 255 UTF-8 bytes, with a NUL or a lone surrogate, as the SHA-256 of its UTF-16 code units under a reserved prefix.
 * So any key works on any store, and two different keys never meet.
 *
 * @param option what the key is called in the error
 * @throws InvalidOptionError if it is not a non-empty string
 */
export function toStoredKey(option: string, key: unknown): string {
  const isFine = typeof key === 'string' && key !== ''
  requireOption(isFine, option, `a non-empty string; got ${key === '' ? "''" : typeof key}`)
  return isPlain(key) ? key : reservedPrefix + createHash('sha256').update(key, 'utf16le').digest('base64url')
}

/**
 * The stored form of what an operator names: a key as the user writes it, or a listed lease, whose key is in stored form
 * already and would be another one if it were hashed again.
 *
 * @throws InvalidOptionError
 */
export function toStoredTarget(target: string | { readonly key: string }): string {
  if (typeof target !== 'object' || target === null) return toStoredKey('key', target)
  let key = ''
  // Read once: what was checked is what is used.
  const isFine = holds(() => isStorable((key = target.key)) && key !== '')
  requireOption(isFine, 'key', 'a non-empty string, or a lease as peek() and list() show it')
  return key
}

/** Whether the stored form of any key can begin with this. */
export function canBeginStoredKey(prefix: string): boolean {
  return isStorable(prefix)
}

function isPlain(key: string): boolean {
  return !key.startsWith(reservedPrefix) && isStorable(key)
}

function isStorable(text: string): boolean {
  if (typeof text !== 'string') return false
  if (text.length > longestPlain || text.includes('\0')) return false
  return text.isWellFormed() && Buffer.byteLength(text) <= longestPlain
}

import { Buffer } from 'node:buffer'

/** What a store keeps of an error, in UTF-8 bytes. */
const longest = 4_000

/** Whatever a handler threw, as text that any store can keep: well-formed, without NUL, at most 4,000 bytes. */
export function errorText(error: unknown): string {
  const text = describe(error).toWellFormed().replaceAll('\0', '\u{FFFD}')
  const bytes = Buffer.from(text)
  // A character that was cut in two becomes U+FFFD, which may be longer than what was left of it.
  return bytes.length <= longest ? text : bytes.subarray(0, longest - 3).toString()
}

function describe(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'The handler threw something that cannot be shown.'
  }
}

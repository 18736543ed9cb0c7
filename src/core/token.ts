import { randomBytes } from 'node:crypto'

const tokenBytes = 18
/** Random bytes are drawn for many tokens at a time: a draw for each was a tenth of what an acquire costs its process. */
let drawn = Buffer.alloc(0)

/** The ownership secret of one acquisition or claim: 144 random bits, used once. */
export function mintToken(): string {
  if (drawn.length < tokenBytes) drawn = randomBytes(128 * tokenBytes)
  const token = drawn.toString('base64url', 0, tokenBytes)
  drawn.fill(0, 0, tokenBytes)
  drawn = drawn.subarray(tokenBytes)
  return token
}

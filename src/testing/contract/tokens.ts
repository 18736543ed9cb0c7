import { randomBytes } from 'node:crypto'

/** 128 random bits, as the core makes them. */
export function newToken(): string {
  return randomBytes(16).toString('base64url')
}

/** A holder that nothing depends on. */
export const plainHolder = '{"instance":"contract","host":"localhost","pid":1}'

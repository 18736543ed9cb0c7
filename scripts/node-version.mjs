import { fail } from './run.mjs'

/** Ends the script when this Node.js is not one the package supports (`engines` in package.json). */
export function requireNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major >= 24
  if (!isSupported) {
    fail(
      `Leasehold needs Node.js 20.19 or later, 22.12 or later, or 24 and up; this is ${process.versions.node}.`,
    )
  }
}

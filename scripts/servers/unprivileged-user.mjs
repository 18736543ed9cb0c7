import { spawnSync } from 'node:child_process'

/**
 * Whom a server that refuses to run as root is to run as; undefined where we are not root.
 * @returns {{ uid: number, gid: number } | undefined}
 */
export function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const ids = ['-u', '-g'].map((flag) =>
      Number.parseInt(spawnSync('id', [flag, name]).stdout.toString(), 10),
    )
    const [uid, gid] = ids
    if (Number.isInteger(uid) && Number.isInteger(gid))
      return { uid: /** @type {number} */ (uid), gid: /** @type {number} */ (gid) }
  }
  throw new Error(
    'PostgreSQL and pgbouncer do not run as root, and there is no user "postgres" or "nobody" to run them as',
  )
}

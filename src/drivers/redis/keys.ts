/**
 * The names of one namespace's keys and of its channel. All carry one hash tag, so that Redis Cluster keeps a
 * namespace in one slot and every script can name any of its keys:
 *
 * - `{leasehold:prod}:k:<key>` a plain lease
 * - `{leasehold:prod}:t:<task>` the record of a task, `…:r:<task>` its run log
 * - `{leasehold:prod}:i` the names of all tasks, `…:e` the ended rows of all run logs by their end
 * - `{leasehold:prod}:c` the control version
 * - `{leasehold:prod}:wake` the channel
 *
 * Scripts derive the other names from the one they are given, because a client may put a prefix of its own before keys.
 */
export interface RedisKeys {
  /** What stands before the stored form of a key. */
  readonly leases: string
  readonly control: string
  readonly tasks: string
  readonly ended: string
  lease(key: string): string
  task(task: string): string
  runs(task: string): string
  readonly channel: string
}

/** @param namespace stored form; any characters */
export function redisKeys(prefix: string, namespace: string): RedisKeys {
  const base = `{${prefix}:${escapeNamespace(namespace)}}:`
  return {
    leases: `${base}k:`,
    control: `${base}c`,
    tasks: `${base}i`,
    ended: `${base}e`,
    lease: (key) => `${base}k:${key}`,
    task: (task) => `${base}t:${task}`,
    runs: (task) => `${base}r:${task}`,
    channel: `${base}wake`,
  }
}

/** Without braces, which would move the hash tag, and without colons, so that prefix and namespace join unambiguously. */
function escapeNamespace(namespace: string): string {
  return namespace.replace(/[%{}:]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

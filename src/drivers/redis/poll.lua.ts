import { taskRecordLua } from './task-record.lua.ts'

/**
 * Reads the control version. Writes nothing.
 *
 * Input: `KEYS` as in task-record.lua.ts, without a task.
 *
 * Output: the version, the time in milliseconds.
 *
 * Atomic because a script is: version and time are of one moment.
 */
export const pollLua: string = String.raw`${taskRecordLua}
return { redis.call('GET', control) or '0', digits(now) }
`

/**
 * Reads rows of the run log of one task, the latest slot first and within a slot the latest attempt first. Writes
 * nothing.
 *
 * Input: `KEYS[1]` the run log; `ARGV` the first slot or `-inf`, the first slot that is too late or `+inf`, how many
 * rows at most.
 *
 * Output: the members, as in task-record.lua.ts.
 *
 * Atomic because it is one command; a script so that each client answers it alike.
 */
export const logLua: string = String.raw`
return redis.call('ZREVRANGEBYSCORE', KEYS[1], '(' .. ARGV[2], ARGV[1], 'LIMIT', 0, ARGV[3])
`

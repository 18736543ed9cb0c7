import { DriverFault, messageOf } from './core/errors.ts'

/**
 * What kept a Redis client from connecting, from the error that it had. Nothing of ours was sent by then; a server that
 * refuses the user, the password or the database goes on doing so.
 */
export function redisRefusal(error: unknown): DriverFault {
  const message = messageOf(error).replace(/\.?$/, '.')
  const isFinal =
    /^(WRONGPASS|NOAUTH|NOPERM|DENIED|ERR) /.test(message) && !/max number of clients/.test(message)
  if (!isFinal) return new DriverFault('not-sent', message, { cause: error })
  const advice = 'Correct the user, the password or the number of the database in the URL.'
  return new DriverFault('unusable', `Redis refused: ${message} ${advice}`, { cause: error })
}

import { DriverFault } from '../core/errors.ts'
import { errorText } from './error-text.ts'

/** What an answer `failed` says of its item. */
export function itemFault(error: unknown): DriverFault {
  return error instanceof DriverFault
    ? error
    : new DriverFault('bad-item', errorText(error), { cause: error })
}

import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'

/** Whom a signal to oneself has to go to. */
export const ownPid = process.pid

/** From here on this process says that it is number 1 on a host that all others are on as well, as containers do. */
export function disguise(): void {
  os.hostname = () => 'the-same-host'
  syncBuiltinESMExports()
  Object.defineProperty(process, 'pid', { value: 1, configurable: true, enumerable: true })
}

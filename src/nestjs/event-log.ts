import type { LoggerService } from '@nestjs/common'
import { onEvent } from '../index.ts'
import { messageOf } from './message-of.ts'

/**
 * Tells Nest's logger what the library has to say about one namespace: what needs a look as errors and warnings, what
 * another process does at debug.
 *
 * @param isOwnTask whether nobody else would log that this task failed
 * @returns a function that ends it
 */
export function logEvents(
  namespace: string,
  logger: LoggerService,
  isOwnTask: (task: string) => boolean,
): () => void {
  const at = (slot: number): string => new Date(slot).toISOString()
  const unsubscribe = [
    onEvent('leasehold:lost', (event) => {
      if (event.namespace !== namespace) return
      logger.error(`The lease of ${JSON.stringify(event.key)} was lost: ${event.reason}`)
    }),
    onEvent('leasehold:max-lifetime', (event) => {
      if (event.namespace !== namespace) return
      logger.warn(`The lease of ${JSON.stringify(event.key)} reaches its maximum lifetime, and will end`)
    }),
    onEvent('leasehold:refresh-failed', (event) => {
      if (event.namespace !== namespace) return
      logger.warn(
        `The lease of ${JSON.stringify(event.key)} could not be renewed, and is tried again: ${messageOf(event.error)}`,
      )
    }),
    onEvent('leasehold:deaf', (event) => {
      if (event.namespace === namespace)
        logger.warn(`No push from the store, so waiters ask: ${messageOf(event.error)}`)
    }),
    onEvent('leasehold:superseded', (event) => {
      if (event.namespace !== namespace) return
      logger.warn(
        `${event.task}: the fleet runs another schedule under this name, so this process does not fire it`,
      )
    }),
    onEvent('leasehold:scheduler-error', (event) => {
      if (event.namespace !== namespace) return
      logger.error(`${event.task ?? 'The scheduler'}: ${messageOf(event.error)}`)
    }),
    onEvent('leasehold:slot', (event) => {
      if (event.namespace !== namespace || !['skipped', 'missed', 'lost'].includes(event.outcome)) return
      const reason = event.reason === undefined || event.reason === '' ? '' : `, ${event.reason}`
      const line = `${event.task} of ${at(event.slot)} did not run: ${event.outcome}${reason}`
      if (event.outcome === 'lost') logger.warn(line)
      else logger.debug?.(line)
    }),
    onEvent('leasehold:run-end', (event) => {
      if (event.namespace !== namespace || event.outcome === 'succeeded') return
      const line = `${event.task} of ${at(event.slot)} ${event.outcome}`
      if (event.outcome !== 'failed') logger.warn(line)
      else if (isOwnTask(event.task)) logger.error(`${line}: ${messageOf(event.error)}`, stackOf(event.error))
    }),
  ]
  return () => {
    for (const end of unsubscribe) end()
  }
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined
}

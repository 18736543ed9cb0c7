import { publish } from '../core/channels.ts'
import type { ServiceContext } from '../core/service-context.ts'

/** Tells that something failed and will be tried again. */
export function reportError(context: ServiceContext, error: unknown, task?: string): void {
  publish('leasehold:scheduler-error', () => ({
    namespace: context.options.namespace,
    ...(task === undefined ? {} : { task }),
    error,
  }))
}

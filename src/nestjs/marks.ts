import { SetMetadata } from '@nestjs/common'
import type { FireOptions } from '../index.ts'

/** What one guarded job can be told. */
export interface GuardedOptions extends Pick<
  FireOptions,
  'ttl' | 'heartbeat' | 'maxLifetime' | 'startDeadline'
> {
  /** The job's name for the fleet, or how to make it of its instance. Default: its `name` option, else class and method. */
  readonly name?: string | ((instance: never) => string) | undefined
}

const unguardedKey = 'leasehold:unguarded'
const guardedKey = 'leasehold:guarded'

/** A `@Cron`, `@Interval` or `@Timeout` that runs in every process, as without Leasehold; on a class, all of its own. */
export function Unguarded(): ClassDecorator & MethodDecorator {
  return SetMetadata(unguardedKey, true)
}

/**
 * A `@Cron`, `@Interval` or `@Timeout` that one process of the fleet runs. Needed with `guard: 'explicit'`; otherwise
 * only to give options.
 */
export function Guarded(options: GuardedOptions = {}): ClassDecorator & MethodDecorator {
  return SetMetadata(guardedKey, options)
}

/** Null: it runs in every process. */
export function marksOf(instance: object, method: object, isByDefault: boolean): GuardedOptions | null {
  for (const target of [method, instance.constructor]) {
    if (metadataOf(unguardedKey, target) === true) return null
    const options = metadataOf(guardedKey, target) as GuardedOptions | undefined
    if (options !== undefined) return options
  }
  return isByDefault ? {} : null
}

/** What a decorator of Nest noted. */
function metadataOf(key: string, target: object): unknown {
  return (Reflect as unknown as { getMetadata(key: string, target: object): unknown }).getMetadata(
    key,
    target,
  )
}

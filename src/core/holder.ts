import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

/** Who holds a lease, as operators see it. Never the token. */
export interface Holder {
  /** One `LockService` instance; random, so that equal host names and pids don't matter. */
  readonly instance: string
  readonly host: string
  readonly pid: number
  readonly label?: string | undefined
  /** The key as the user wrote it, cut to 200 characters, where the store sees only its hash. */
  readonly key?: string | undefined
}

/** A function that describes this process and one `LockService` in it, as the JSON text that stores keep. */
export function holderDescriber(): (details: { label?: string | null; key?: string | null }) => string {
  const self = { instance: randomUUID(), host: hostname().slice(0, 100), pid: process.pid }
  const plain = fitting(self)
  return ({ label = null, key = null }) =>
    label === null && key === null
      ? plain
      : fitting({
          ...self,
          ...(label === null ? {} : { label }),
          ...(key === null ? {} : { key: key.slice(0, 200) }),
        })
}

/** At most 1,000 bytes, as the driver contract asks: the longest text is cut until it fits. */
function fitting(holder: Holder): string {
  const text = JSON.stringify(holder)
  if (Buffer.byteLength(text) <= 1_000) return text
  const { label = '', key = '' } = holder
  return fitting(
    label.length > key.length
      ? { ...holder, label: label.slice(0, label.length / 2) }
      : { ...holder, key: key.slice(0, key.length / 2) },
  )
}

/** Reads what {@link holderDescriber} wrote; foreign or damaged texts give empty fields, never an exception. */
export function parseHolder(text: string): Holder {
  const fields = parseObject(text)
  const { instance, host, pid, label, key } = fields
  return {
    instance: typeof instance === 'string' ? instance : '',
    host: typeof host === 'string' ? host : '',
    pid: typeof pid === 'number' ? pid : 0,
    ...(typeof label === 'string' ? { label } : {}),
    ...(typeof key === 'string' ? { key } : {}),
  }
}

function parseObject(text: string): Partial<Record<keyof Holder, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

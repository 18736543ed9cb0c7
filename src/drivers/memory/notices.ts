import { DriverFault } from '../../core/errors.ts'
import type { Notice, NoticeChannel, NoticeListener } from '../../driver/driver.ts'
import type { MemoryNamespace } from './table.ts'

/** Kept: test frameworks replace it by one that never comes. */
const { queueMicrotask: soon } = globalThis

/** Tells every channel of the namespace, after the call that caused the notice has been answered. */
export function notify(table: MemoryNamespace, notice: Notice): void {
  for (const listener of table.listeners) {
    soon(() => {
      if (table.listeners.has(listener)) listener.onNotice(notice)
    })
  }
}

/** A push channel of the in-process store. It works as long as the process does, so it never goes deaf. */
export function openChannel(table: MemoryNamespace, listener: NoticeListener): NoticeChannel {
  // Its own object: the same listener may be given to two channels, and closing one must not close the other.
  const own: NoticeListener = {
    onNotice: (notice) => listener.onNotice(notice),
    onDeaf: (error) => listener.onDeaf(error),
  }
  table.listeners.add(own)
  return {
    async probe() {
      if (!table.listeners.has(own)) {
        throw new DriverFault('not-sent', 'This push channel was closed. Open another one with listen().')
      }
    },
    async close() {
      table.listeners.delete(own)
    },
  }
}

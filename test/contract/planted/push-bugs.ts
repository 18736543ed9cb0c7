import { openChannel } from '../../../src/drivers/memory/notices.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Ways in which waking those who wait has been got wrong. */
export const pushBugs: readonly PlantedBug[] = [
  {
    id: 'silently-deaf',
    what: 'A subscription succeeds and hears nothing, as behind a pooler.',
    needs: 'push',
    caughtBy: ['the release of an awaited key wakes who listens'],
    plant: ({ table }) => ({
      listen: async (listener) => openChannel(table, { ...listener, onNotice: () => {} }),
    }),
  },
  {
    id: 'control-not-pushed',
    what: 'Releases are pushed, pause, resume and cancel are not.',
    needs: 'push',
    caughtBy: [
      'pause, resume and cancel are told with the control version',
      'an edited schedule is told as well',
    ],
    plant: ({ table }) => ({
      listen: async (listener) =>
        openChannel(table, {
          ...listener,
          onNotice: (notice) => notice.kind === 'released' && listener.onNotice(notice),
        }),
    }),
  },
  {
    id: 'notice-cuts-the-key',
    what: 'A notice carries the key only up to its first colon.',
    needs: 'push',
    caughtBy: ['keys arrive in notices as they are'],
    plant: ({ table }) => ({
      listen: async (listener) =>
        openChannel(table, {
          ...listener,
          onNotice: (notice) =>
            listener.onNotice(
              notice.kind === 'released' ? { ...notice, key: notice.key.replace(/(.):.*/, '$1') } : notice,
            ),
        }),
    }),
  },
  {
    id: 'closed-channel-hears-on',
    what: 'A channel that was closed goes on telling.',
    needs: 'push',
    caughtBy: ['a closed channel hears nothing, and closing it again is fine'],
    plant: ({ table }) => ({
      listen: async (listener) => ({ ...openChannel(table, listener), close: async () => {} }),
    }),
  },
  {
    id: 'one-listener-only',
    what: 'A second subscription of a namespace takes the place of the first.',
    needs: 'push',
    caughtBy: ['everybody who listens hears it'],
    plant: ({ table }) => ({
      listen: async (listener) => {
        table.listeners.clear()
        return openChannel(table, listener)
      },
    }),
  },
  {
    id: 'immediate-revocation-is-silent',
    what: 'Who waits is not woken by an immediate revocation.',
    needs: 'push',
    caughtBy: ['an immediate revocation wakes who waits'],
    plant: ({ locks, table }) => ({
      locks: {
        revoke: (request, call) => {
          const row = table.leases.get(request.key)
          if (row && request.immediate) table.leases.set(request.key, { ...row, waitingUntil: 0 })
          return locks.revoke(request, call)
        },
      },
    }),
  },
]

import { around, servers, type StoreFault } from './scene.ts'

export const storeFaults: readonly StoreFault[] = [
  {
    kind: 'server-restart',
    drivers: servers,
    async strike({ store, random, wait }) {
      await store.server?.stop()
      await wait(random.pick([0, 300, 1_500]))
      await store.server?.start()
    },
  },
  {
    kind: 'server-crash',
    drivers: servers,
    weight: 2,
    async strike({ store }) {
      await store.server?.kill()
      await store.server?.start()
    },
  },
  {
    kind: 'server-pause',
    drivers: servers,
    async strike(scene) {
      const { server } = scene.store
      server?.pause()
      await scene.wait(around(scene, 0.2, 2))
      server?.resume()
    },
  },
  {
    kind: 'data-loss',
    drivers: ['redis'],
    async strike({ store, administrator, except }) {
      await store.server?.kill()
      administrator.forgetAll()
      except('data-loss', null)
      await store.server?.start()
    },
  },
  {
    kind: 'script-flush',
    drivers: ['redis'],
    async strike({ administrator }) {
      await administrator.redis('SCRIPT', 'FLUSH')
    },
  },
  {
    kind: 'clients-killed',
    drivers: servers,
    async strike({ administrator }) {
      await administrator.killClients('all')
    },
  },
  {
    kind: 'subscribers-killed',
    drivers: servers,
    async strike({ administrator }) {
      await administrator.killClients('subscribers')
    },
  },
  {
    kind: 'file-locked',
    drivers: ['sqlite'],
    weight: 3,
    async strike(scene) {
      const unlock = await scene.administrator.lockFile()
      try {
        await scene.wait(around(scene, 0.2, 1.6))
      } finally {
        unlock()
      }
    },
  },
]

export const operatorFaults: readonly StoreFault[] = [
  {
    kind: 'deletion',
    async strike({ random, hotKeys, administrator, except }) {
      const key = random.pick(hotKeys)
      // Before and after: nobody can tell when exactly it was deleted.
      except('deletion', `lock:${key}`)
      await administrator.deleteLease(key)
      except('deletion', `lock:${key}`)
    },
  },
  {
    kind: 'emptied',
    async strike({ administrator, except }) {
      except('emptied', null)
      await administrator.empty()
      except('emptied', null)
    },
  },
  {
    kind: 'force-release',
    async strike({ random, hotKeys, operator }) {
      await operator.forceRelease(random.pick(hotKeys))
    },
  },
  {
    kind: 'immediate-release',
    async strike({ random, hotKeys, operator, except }) {
      const key = random.pick(hotKeys)
      except('immediate-release', `lock:${key}`)
      await operator.forceRelease(key, { immediate: true })
      except('immediate-release', `lock:${key}`)
    },
  },
]

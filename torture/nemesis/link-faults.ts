import type { FaultMode } from '../../test/support/fault-proxy.ts'
import { around, type PlaceFault, type Scene, servers } from './scene.ts'
import type { Place } from '../fleet.ts'

export const linkFaults: readonly PlaceFault[] = [
  link('latency', ({ random }) => ({ latencyMs: random.pick([5, 30, 150, 400]) }), 1, 3),
  link('answers-lost', () => 'drop-answers', 0.2, 2),
  link('requests-lost', () => 'drop-requests', 0.2, 2),
  link('answers-held', () => 'hold-answers', 0.3, 2.5),
  link('black-hole', () => 'blackhole', 0.3, 3),
  link('refused', () => 'refuse', 0.2, 2),
  cut('cut-answers'),
  cut('cut-requests'),
  {
    kind: 'reset',
    drivers: servers,
    async strike({ random, wait }, { proxy }) {
      for (let times = 1 + random.integer(4); times > 0; times--) {
        proxy?.resetAll()
        await wait(random.integer(300))
      }
    },
  },
]

/** Messages that end in the middle, a few of them. */
function cut(mode: 'cut-answers' | 'cut-requests'): PlaceFault {
  return {
    kind: mode,
    drivers: servers,
    async strike({ random, wait }, { proxy }) {
      for (let times = 1 + random.integer(3); times > 0; times--) {
        await proxy?.set(mode)
        await wait(20 + random.integer(200))
        await proxy?.set('pass')
        await wait(random.integer(300))
      }
    },
  }
}

/** A mode of the proxy, for a duration in ttls; what it swallowed is then cut off, as keep-alive would in the end. */
function link(kind: string, mode: (scene: Scene) => FaultMode, least: number, most: number): PlaceFault {
  return {
    kind,
    drivers: servers,
    async strike(scene, { proxy }: Place) {
      await proxy?.set(mode(scene))
      await scene.wait(around(scene, least, most))
      await proxy?.set('pass')
      if (proxy !== null && /lost/.test(kind)) proxy.resetAll()
    },
  }
}

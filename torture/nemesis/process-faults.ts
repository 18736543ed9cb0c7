import type { DeathPoint } from '../worker/messages.ts'
import { around, type PlaceFault, type Scene, servers } from './scene.ts'
import type { Place } from '../fleet.ts'

const deathPoints: readonly DeathPoint[] = ['after-grant', 'mid-renewal', 'after-claim', 'after-completion']

export const processFaults: readonly PlaceFault[] = [
  {
    kind: 'kill',
    weight: 2,
    async strike({ fleet }, place) {
      await place.worker.kill()
      fleet.replace(place)
    },
  },
  {
    kind: 'kill-at-point',
    weight: 2,
    async strike({ fleet, random }, place) {
      await place.worker.kill({ do: 'die', at: random.pick(deathPoints) }, 1_500)
      fleet.replace(place)
    },
  },
  {
    kind: 'stop',
    weight: 2,
    strike: (scene, place) => stop(scene, place, around(scene, 1.1, 3)),
  },
  { kind: 'stop-short', strike: (scene, place) => stop(scene, place, around(scene, 0.8, 0.99)) },
  {
    kind: 'block',
    weight: 2,
    async strike(scene, place) {
      const ms = around(scene, 0.5, 2.5)
      place.worker.tell({ do: 'block', ms })
      await scene.wait(ms)
    },
  },
  {
    kind: 'rolling-restart',
    async strike({ fleet }, place) {
      await place.worker.leave('SIGTERM')
      fleet.replace(place)
    },
  },
  {
    kind: 'clock-step',
    drivers: servers,
    weight: 2,
    async strike({ random, wait }, place) {
      for (let step = 0; step < 3; step++) {
        const sign = random.pick([1, -1])
        place.worker.tell({ do: 'step-clock', ms: sign * random.pick([1_000, 10_000, 3_600_000]) })
        await wait(random.integer(700))
      }
    },
  },
  {
    kind: 'clock-drift',
    drivers: servers,
    async strike(scene, place) {
      place.worker.tell({ do: 'drift-clock', wallRate: scene.random.pick([0.8, 1.2]) })
      await scene.wait(around(scene, 1, 4))
      place.worker.tell({ do: 'drift-clock', wallRate: 1 })
    },
  },
]

async function stop({ wait }: Scene, { worker }: Place, ms: number): Promise<void> {
  worker.signal('SIGSTOP')
  await wait(ms)
  worker.signal('SIGCONT')
}

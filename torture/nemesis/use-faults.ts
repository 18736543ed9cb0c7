import type { Fleet, Place } from '../fleet.ts'
import { around, type PlaceFault, type Scene, servers, type StoreFault } from './scene.ts'

/** What an application does to the library without meaning any harm. */
export const useFaults: readonly PlaceFault[] = [
  {
    kind: 'pool-exhausted',
    drivers: servers,
    suits: ({ by }) => by === 'application',
    async strike(scene, place) {
      const ms = around(scene, 0.5, 2.5)
      place.worker.tell({ do: 'occupy-pool', ms })
      await scene.wait(ms)
    },
  },
  {
    kind: 'bad-callbacks',
    async strike(scene, place) {
      const ms = around(scene, 1, 4)
      place.worker.tell({ do: 'misbehave', ms })
      await scene.wait(ms)
    },
  },
]

/** The same, of the fleet as a whole, or once at a time. */
export const fleetFaults: readonly StoreFault[] = [
  {
    kind: 'many-leases',
    async strike(scene) {
      const { fleet, random, massKeys, isAlone, wait } = scene
      const prefix = `${massKey(scene, 'hoard')}-`
      const leases = isAlone ? 10_000 : 2_000
      // Long enough for each of them to be renewed several times.
      const order = { do: 'hoard', id: massKeys.length, prefix, leases, ms: 6_000 } as const
      await Promise.race([random.pick(fleet.places).worker.done(order), wait(30_000)])
    },
  },
  {
    kind: 'crowd',
    async strike(scene) {
      const { fleet, wait } = scene
      const key = massKey(scene, 'crowd')
      const id = scene.massKeys.length
      const waiters = Math.ceil(1_000 / fleet.places.length)
      const done = fleet.places.map(({ worker }) => worker.done({ do: 'crowd', id, key, waiters }))
      await Promise.race([Promise.all(done), wait(30_000)])
    },
  },
  {
    kind: 'edited-schedule',
    weight: 2,
    async strike(scene) {
      const { fleet, random, wait } = scene
      const edition = Math.max(...fleet.places.map((place) => place.edition)) + 1
      const odd = random.integer(2)
      for (const place of fleet.places.filter(({ index }) => index % 2 === odd)) {
        // Where another fault is at work, the new edition comes with the next worker.
        place.edition = edition
        await restart(fleet, place)
      }
      // One of the others restarts with the edition that it had: it must not bring that back.
      const old = fleet.places.filter((place) => place.edition < edition)
      if (old.length > 0) await restart(fleet, random.pick(old))
      await wait(around(scene, 1, 4))
    },
  },
]

async function restart(fleet: Fleet, place: Place): Promise<void> {
  if (place.busy) return
  place.busy = true
  await place.worker.leave('SIGTERM')
  fleet.replace(place)
  place.busy = false
}

/** A key, or the beginning of keys, that nobody else uses. */
function massKey({ massKeys }: Scene, what: string): string {
  const key = `${what}-${massKeys.length}`
  massKeys.push(key)
  return key
}

import { UnguardableError } from '../../index.ts'

/** A method that a timer fires, before it has a name in the fleet. */
export interface NamedMethod {
  readonly instance: object
  readonly key: string
  /** As it was told, or class and method. */
  readonly shortName: string
  /** The module that provides its class. */
  readonly module: string
}

/**
 * The names of all jobs: short, or where two come out equal, with their modules before them.
 *
 * @throws UnguardableError if two are still equal: they would share their slots, and one of them would never run
 */
export function nameJobs<Method extends NamedMethod>(methods: readonly Method[]): Map<Method, string> {
  const names = new Map(methods.map((method) => [method, method.shortName]))
  for (const equal of withEqualNames(names)) {
    for (const method of equal) names.set(method, `${method.module}/${method.shortName}`)
  }
  const [stillEqual] = withEqualNames(names)
  if (stillEqual === undefined) return names
  const [one, other] = stillEqual.map((method) => `${method.instance.constructor.name}.${method.key}`)
  throw new UnguardableError(
    `Two jobs would be named ${JSON.stringify(names.get(stillEqual[0] as Method))} in the fleet, ${one} and ${other}: they would share their runs. Give one a name, @Guarded({ name: '…' }), a function of its instance if both are of one class; or mark it @Unguarded().`,
  )
}

function withEqualNames<Method>(names: ReadonlyMap<Method, string>): Method[][] {
  const byName = new Map<string, Method[]>()
  for (const [method, name] of names) byName.set(name, [...(byName.get(name) ?? []), method])
  return [...byName.values()].filter((methods) => methods.length > 1)
}

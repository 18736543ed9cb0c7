import { expect } from 'vitest'

/*
 * What a lock service on any store should do, as a map of key to holder, fence and expiry. Written from the promises, and
 * from none of the code that keeps them.
 */

/** One lease that was granted. */
export interface Grant {
  readonly key: string
  readonly process: number
  readonly token: string
  readonly fence: number
  /** The longest time that was asked for: its expiry is that far away, since no run of moves lasts for long. */
  ttlMs: number
  /** What its holder thinks; `dead` is a holder that crashed. */
  mind: 'trusts' | 'knows it lost' | 'released' | 'dead'
}

/** What the store has for a key. */
export interface Entry {
  /** Who was granted it last and has not given it back. */
  grant: Grant | null
  /** It had lapsed, and the key is free. */
  hasLapsed: boolean
  isRevoked: boolean
  /** The token that was released last. */
  spent: string | null
  /** A purge may have deleted the record, and with it what was spent. */
  isPurged: boolean
  /** Greater than any before it has to be the next. */
  fence: number
  /** Who waits, in the order in which they came. */
  readonly line: Waiting[]
}

export interface Waiting {
  readonly id: number
  readonly key: string
  readonly process: number
}

export class LockModel {
  readonly entries: ReadonlyMap<string, Entry>
  /** All that were ever granted. */
  readonly grants: Grant[] = []
  waits = 0

  constructor(keys: readonly string[]) {
    const empty = { grant: null, hasLapsed: false, isRevoked: false, spent: null, isPurged: false, fence: 0 }
    this.entries = new Map(keys.map((key) => [key, { ...empty, line: [] }]))
  }

  entry(key: string): Entry {
    return this.entries.get(key) as Entry
  }

  /** The grant that closes the key at present. */
  holder(key: string): Grant | null {
    const { grant, hasLapsed } = this.entry(key)
    return hasLapsed ? null : grant
  }

  holds(grant: Grant): boolean {
    return this.holder(grant.key) === grant
  }

  get waiting(): readonly Waiting[] {
    return [...this.entries.values()].flatMap(({ line }) => line)
  }

  /** Of each process, who asks for the key: whoever came first there. */
  askers(key: string): readonly Waiting[] {
    const { line } = this.entry(key)
    return line.filter(({ process }, index) => line.findIndex((one) => one.process === process) === index)
  }

  /** A key that was free was granted. */
  granted(grant: Grant): void {
    const entry = this.entry(grant.key)
    expect(this.holder(grant.key), 'who held it when it was granted').toBeNull()
    expect(Number.isSafeInteger(grant.fence)).toBe(true)
    expect(grant.fence, 'the fence').toBeGreaterThan(entry.fence)
    Object.assign(entry, { grant, fence: grant.fence, hasLapsed: false, isRevoked: false })
    this.grants.push(grant)
  }

  wait(key: string, process: number): Waiting {
    const waiting = { id: this.waits++, key, process }
    this.entry(key).line.push(waiting)
    return waiting
  }

  leaveLine({ id, key }: Waiting): void {
    const { line } = this.entry(key)
    line.splice(
      line.findIndex((one) => one.id === id),
      1,
    )
  }

  /** What a release by this token answers, in the store. Null: it cannot be known. */
  releaseAnswer(key: string, token: string): 'released' | 'lost' | null {
    const { grant, spent, isPurged, hasLapsed } = this.entry(key)
    if (grant?.token === token) return hasLapsed ? 'lost' : 'released'
    if (isPurged) return null
    return spent === token ? 'released' : 'lost'
  }

  /** A release by this token has reached the store. */
  released(key: string, token: string): void {
    const entry = this.entry(key)
    if (entry.grant?.token !== token) return
    Object.assign(entry, { grant: null, hasLapsed: false, isRevoked: false, spent: token, isPurged: false })
  }

  /** A grant reached its process too late to be trusted, and was given back: nobody has its token. */
  givenBack(key: string): void {
    Object.assign(this.entry(key), { grant: null, hasLapsed: false, isPurged: true })
  }

  lapsed(key: string): void {
    this.entry(key).hasLapsed = true
  }

  /** An operator has deleted the record. */
  forgotten(key: string): void {
    Object.assign(this.entry(key), {
      grant: null,
      hasLapsed: false,
      isRevoked: false,
      spent: null,
      isPurged: false,
    })
  }

  /** Records of free keys may have been deleted. */
  purged(): void {
    for (const entry of this.entries.values()) {
      if (entry.grant !== null && !entry.hasLapsed) continue
      Object.assign(entry, { grant: null, hasLapsed: false, isPurged: true })
    }
  }
}

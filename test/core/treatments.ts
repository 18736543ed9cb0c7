import { DriverFault, type DriverFaultKind } from 'leasehold'
import type { VirtualTime } from './virtual-time.ts'
import type { Treatment } from './watched-driver.ts'

/** Never arrives, never answers. */
export const hang: Treatment = () => new Promise(() => {})

/** Is carried out, and never answers. */
export const loseAnswer: Treatment = async (pass) => {
  await pass()
  return new Promise(() => {})
}

/** Fails without having been carried out. */
export const fail =
  (kind: DriverFaultKind): Treatment =>
  () =>
    Promise.reject(new DriverFault(kind, `It failed, as planned: ${kind}.`))

/** Is carried out, and the connection is gone before the answer. */
export const cutAnswer: Treatment = async (pass) => {
  await pass()
  throw new DriverFault('unknown', 'The connection was cut.')
}

/** Takes this long on its way there, and on its way back. */
export const delay =
  (time: VirtualTime, thereMs: number, backMs = 0): Treatment =>
  async (pass) => {
    await time.sleep(thereMs)
    const answer = await pass()
    await time.sleep(backMs)
    return answer
  }

/** Answers this for every item, and asks nobody. */
export const answer =
  (one: object): Treatment =>
  (_pass, { verb, items }) =>
    Promise.resolve(verb === 'revoke' ? one : items.map(() => one))

/** Holds a call until it is let go. */
export interface Gate {
  /** Carried out only when it is let go. */
  readonly before: Treatment
  /** Carried out at once, and answered when it is let go. */
  readonly after: Treatment
  letGo(): void
}

export function gate(): Gate {
  let letGo = (): void => {}
  const opened = new Promise<void>((resolve) => {
    letGo = resolve
  })
  return {
    before: async (on) => {
      await opened
      return on()
    },
    after: async (on) => {
      const given = await on()
      await opened
      return given
    },
    letGo: () => letGo(),
  }
}

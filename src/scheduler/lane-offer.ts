import type { Claimed } from './claimer.ts'
import type { Offered } from './lanes.ts'

/** The slot that was handed to a lane, until it is known what comes of it. */
export class LaneOffer {
  #open: { readonly slot: number; readonly settle: (offered: Offered) => void } | null = null

  /** Null if there is none. */
  get slot(): number | null {
    return this.#open?.slot ?? null
  }

  /** @param begin called when it is there to be claimed */
  make(slot: number, signal: AbortSignal, begin: () => void): Promise<Offered> {
    return new Promise((resolve) => {
      const giveUp = (): void => settle('given-up')
      const settle = (offered: Offered): void => {
        signal.removeEventListener('abort', giveUp)
        if (this.#open === offer) this.#open = null
        resolve(offered)
      }
      const offer = { slot, settle }
      signal.addEventListener('abort', giveUp)
      // One that is still there comes from a hand-over that was taken over meanwhile, here.
      this.#open?.settle('passed')
      this.#open = offer
      if (signal.aborted) giveUp()
      else begin()
    })
  }

  /** What the answer to a claim of a slot means for whoever handed it over. */
  answered(slot: number, answer: Claimed['answer']): void {
    if (this.#open === null || this.#open.slot !== slot) return
    const { settle } = this.#open
    const { outcome, mark } = answer
    if (outcome === 'early' || outcome === 'behind' || outcome === 'takeover') return
    const isOther = outcome === 'granted' && answer.slot !== slot
    if (outcome === 'held' || isOther) settle('busy')
    else settle(mark === slot ? 'begun' : 'passed')
  }
}

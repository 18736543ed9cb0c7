import { currentRun } from 'leasehold/nestjs'
import { expect, vi } from 'vitest'

/** What ran, each with its slot; 0 without one. */
export class Runs {
  readonly all: { readonly name: string; readonly slot: number }[] = []

  note(name: string): void {
    this.all.push({ name, slot: currentRun()?.slot?.getTime() ?? 0 })
  }

  of(name: string): number[] {
    return this.all.filter((run) => run.name === name).map(({ slot }) => slot)
  }

  /** Waits for a name to have run so often. */
  async reach(name: string, times: number): Promise<number[]> {
    await vi.waitFor(() => expect(this.of(name).length).toBeGreaterThanOrEqual(times), 10_000)
    return this.of(name)
  }
}

/** Of a job that fires each second. */
export const isSlot = (slot: number): boolean => slot > 0 && slot % 1_000 === 0

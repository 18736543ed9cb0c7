export interface Request {
  readonly id: number
  readonly verb: string
  readonly args: readonly unknown[]
}

export interface Reply {
  readonly id: number
  readonly result?: unknown
  /** What was thrown, with its stack. */
  readonly error?: string
}

/** What a worker of one role can be asked for. All of it takes and gives what JSON can carry. */
export type Verbs = Readonly<Record<string, (...args: never[]) => Promise<unknown>>> & {
  readonly close: () => Promise<void>
}

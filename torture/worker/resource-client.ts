import type { ResourceRequest, WorkerMessage, WorkerOrder } from './messages.ts'

interface ResourceAnswer {
  readonly accepted: boolean
  readonly value: number
}

/** A resource that compares fences, at the other end of the message channel. Asks are answered late, or never. */
export class ResourceClient {
  readonly #open = new Map<number, (answer: ResourceAnswer) => void>()
  #ids = 0

  /** The value, or null if the fence was too low. */
  async read(of: string, fence: number): Promise<number | null> {
    const { accepted, value } = await this.#ask({ verb: 'read', of, fence, value: 0 })
    return accepted ? value : null
  }

  async write(of: string, fence: number, value: number): Promise<boolean> {
    const { accepted } = await this.#ask({ verb: 'write', of, fence, value })
    return accepted
  }

  hear(order: Extract<WorkerOrder, { do: 'answer' }>): void {
    this.#open.get(order.id)?.(order)
    this.#open.delete(order.id)
  }

  #ask(request: Omit<ResourceRequest, 'id'>): Promise<ResourceAnswer> {
    return new Promise((resolve) => {
      const id = ++this.#ids
      this.#open.set(id, resolve)
      tell({ tell: 'resource', id, ...request })
    })
  }
}

export function tell(message: WorkerMessage): void {
  if (process.connected) process.send?.(message)
}

import type { ModulesContainer } from '@nestjs/core'

/**
 * Has tasks end before the application closes what they work with. Nest destroys the modules from the root on, so what
 * stands in the root module comes first, whichever module a client belongs to. (Only clients that the root module
 * itself closes are closed at the same time.)
 */
export function drainFirst(modules: ModulesContainer, drain: () => Promise<void>): void {
  const root = rootOf(modules)
  const token = Symbol('leasehold:drain')
  root?.addProvider({ provide: token, useValue: { onModuleDestroy: drain } })
}

/** The first one is Nest's own. */
function rootOf(modules: ModulesContainer) {
  const [, root] = [...modules.values()]
  return typeof root?.addProvider === 'function' ? root : undefined
}

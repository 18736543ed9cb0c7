import type { AnyMethod } from './method-target.ts'

/**
 * A function that stands in for a method. It inherits from it, so that metadata which frameworks keep for the method
 * (`Reflect.getMetadata`, own properties) is found on the stand-in: a scheduler that does not find its own would leave
 * the method out without a word.
 */
export function resembling(method: AnyMethod, standIn: AnyMethod): AnyMethod {
  Object.setPrototypeOf(standIn, method)
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(standIn, property, { value: method[property], configurable: true })
  }
  return standIn
}

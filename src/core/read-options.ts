import { InvalidOptionError, quoted } from './errors.ts'

/**
 * A copy of the options that a caller passed: each one read once, and those that are undefined left out. So what was
 * checked is what is used, whatever object they came in; class instances and frozen objects will do.
 *
 * @param what the function they are for, in the error
 * @throws InvalidOptionError for what is no object, and for an option that does not exist: a misspelt one would silently
 *   do nothing
 */
export function readOptions<Options extends object>(
  what: string,
  options: Options,
  known: readonly (keyof Options & string)[],
): Options {
  if (typeof options !== 'object' || options === null || !holds(() => !Array.isArray(options))) {
    throw new InvalidOptionError('options', `The options of ${what} must be an object.`)
  }
  for (const name of reading(what, 'options', () => Object.keys(options))) {
    if (!known.includes(name as keyof Options & string)) {
      throw new InvalidOptionError(
        name,
        `${what} has no option ${quoted(name)}. Its options: ${known.join(', ')}.`,
      )
    }
  }
  const read: Partial<Options> = {}
  for (const name of known) {
    const value = reading(what, name, () => options[name])
    if (value !== undefined) read[name] = value
  }
  return read as Options
}

/** A getter or a proxy may throw anything: what the caller gets names the option, and has that for its cause. */
function reading<Value>(what: string, option: string, read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw new InvalidOptionError(option, `${option} of ${what} cannot be read: it threw when it was.`, {
      cause,
    })
  }
}

/** Whether a claim about a caller's object holds. It does not where looking at the object throws, as at a revoked proxy. */
export function holds(claim: () => boolean): boolean {
  try {
    return claim()
  } catch {
    return false
  }
}

// Copied beside the peers that are installed for the benchmark, so that a bare name means one of them.

/** @param {string} name */
export const load = (name) => import(name)

/** Where an import of this name leads. @param {string} name */
export const resolve = (name) => import.meta.resolve(name)

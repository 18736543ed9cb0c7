import { pathToFileURL } from 'node:url'

interface Loader {
  load(name: string): Promise<unknown>
  resolve(name: string): string
}

/**
 * Loads a package that only the benchmark uses. On demand: what needs no peer runs without any of them being installed.
 * @throws Error outside of `npm run bench`, which installs them
 */
export async function loadPeer<Module>(name: string): Promise<Module> {
  return (await loader()).load(name) as Promise<Module>
}

/** The URL of a peer's main file. */
export async function resolvePeer(name: string): Promise<string> {
  return (await loader()).resolve(name)
}

async function loader(): Promise<Loader> {
  const path = process.env['LEASEHOLD_BENCH_PEERS']
  if (path === undefined)
    throw new Error('The peers are installed by npm run bench: start the benchmark with it.')
  return import(pathToFileURL(path).href) as Promise<Loader>
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from './root.mjs'

/**
 * What becomes one file each, from the bottom up: a file takes along what its modules import and none before it has. What
 * else several entry points share is split as it comes.
 */
const files = [
  { name: 'core', test: /[\\/]src[\\/]core[\\/]/ },
  { name: 'driver', test: /[\\/]src[\\/]driver[\\/](?!index)/ },
  { name: 'sql', test: /[\\/]src[\\/]sql[\\/]/ },
  { name: 'scheduler', test: /[\\/]src[\\/]scheduler[\\/]/ },
  { name: 'memory', test: /[\\/]src[\\/]drivers[\\/]memory[\\/]/ },
  { name: 'connect', test: /[\\/]src[\\/](?!index)[^\\/]+$/ },
]

/**
 * Joins the sources of each layer into one file of dist, readable as they were written: what an import costs is the number
 * of its files more than their size (docs/adr/0019-one-file-per-layer.md).
 */
export async function bundle() {
  const bundler = await rolldown({
    cwd: root,
    input: entryPoints(),
    platform: 'node',
    external: (id) => /^[a-z@]/.test(id),
    // connect() loads the in-process driver on demand, as any other, although LockService has it by then.
    checks: { ineffectiveDynamicImport: false },
  })
  await bundler.write({
    dir: join(root, 'dist'),
    cleanDir: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    minifyInternalExports: false,
    codeSplitting: { groups: files },
  })
}

/** Those of package.json. @returns {Record<string, string>} path in dist without its extension → source */
function entryPoints() {
  /** @type {{ exports: Record<string, { default?: string }> }} */
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.fromEntries(
    Object.values(exports).flatMap(({ default: path }) => {
      const name = path?.match(/^\.\/dist\/(.*)\.js$/)?.[1]
      return name === undefined ? [] : [[name, `src/${name}.ts`]]
    }),
  )
}

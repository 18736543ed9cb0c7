// The layers of src and what each may import: a small table, and the code that holds every file against it.
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync } from 'vite'
import { root } from '../root.mjs'

/**
 * @typedef {object} Layer
 * @property {RegExp} files the paths below src that belong to it; its first group is the store, where there is one
 * @property {string} rule said when it is broken
 * @property {RegExp[]} may what it may import besides itself
 * @property {string[]} [packages] the packages it may import; Node.js' own modules are always allowed
 * @property {boolean} [loadsPackages] whether it may load other packages on demand, by `import()`
 */

const errors = /^core\/errors\.ts$/
const readOptions = /^core\/read-options\.ts$/
const driverContracts = /^driver\//
const core = /^core\//
const sql = /^sql\//
const entryPoints =
  /^(index|connect|driver\/index|drivers\/[^/]+\/index|integrations\/index|testing\/index)\.ts$/

/** The first layer that a path belongs to counts. @type {Layer[]} */
const layers = [
  { files: /^index\.ts$/, rule: 'index.ts only re-exports', may: [/./] },
  {
    files: /^[^/]+\.ts$/,
    rule: 'what stands in src itself joins core, the driver contracts, scheduler and the entry points of the drivers',
    may: [core, driverContracts, /^scheduler\//, /^drivers\/[^/]+\/index\.ts$/],
    loadsPackages: true,
  },
  { files: errors, rule: 'errors import nothing of ours', may: [] },
  { files: core, rule: 'core imports nothing outside itself and driver', may: [driverContracts] },
  {
    files: driverContracts,
    rule: 'the driver contracts import nothing outside themselves but errors',
    may: [errors],
  },
  { files: sql, rule: 'sql imports only the driver contracts and errors', may: [driverContracts, errors] },
  {
    files: /^drivers\/([^/]+)\//,
    rule: 'a driver imports only the driver contracts, errors, read-options and sql: never another driver, and a client at most by import()',
    may: [driverContracts, errors, readOptions, sql],
    loadsPackages: true,
  },
  {
    files: /^scheduler\//,
    rule: 'scheduler imports only core and the driver contracts',
    may: [core, driverContracts],
    packages: ['croner'],
  },
  {
    files: /^testing\//,
    rule: 'testing imports only core, the driver contracts, scheduler and the in-process driver',
    may: [core, driverContracts, /^scheduler\//, /^drivers\/memory\//],
  },
  {
    files: /^nestjs\//,
    rule: 'nestjs imports only the public entry points, and of Nest its common and core',
    may: [entryPoints],
    packages: ['@nestjs/common', '@nestjs/core'],
  },
  {
    files: /^(cli|dashboard|telemetry|integrations)\//,
    rule: 'cli, dashboard, telemetry and integrations import only the public entry points',
    may: [entryPoints],
    packages: ['@opentelemetry/api'],
    loadsPackages: true,
  },
]

/** @typedef {{ specifier: string, line: number, kind: 'static' | 'type' | 'dynamic' }} Import `type`: gone at run time */

/**
 * Every rule that is broken, as `file:line: rule (what was found)`.
 * @param {ReadonlyMap<string, string>} sources path below src → text
 * @returns {string[]}
 */
export function brokenLayerRules(sources) {
  const files = new Map([...sources].map(([path, text]) => [path, parse(path, text)]))
  const broken = []
  for (const [path, { imports, reExportsOnly }] of files) {
    const layer = layers.find((candidate) => candidate.files.test(path))
    if (layer === undefined) {
      broken.push(
        `src/${path}:1: every file belongs to a layer (add its folder to scripts/checks/layers.mjs)`,
      )
      continue
    }
    if (path === 'index.ts' && !reExportsOnly) {
      broken.push(`src/${path}:1: ${layer.rule}`)
    }
    for (const found of imports) {
      if (!isAllowed(path, layer, found))
        broken.push(`src/${path}:${found.line}: ${layer.rule} (imports ${found.specifier})`)
    }
  }
  return [...broken, ...cycles(files)]
}

/**
 * @param {string} path
 * @param {Layer} layer
 * @param {Import} found
 */
function isAllowed(path, layer, { specifier, kind }) {
  if (!specifier.startsWith('.')) {
    if (isBuiltin(specifier) || (layer.packages ?? []).includes(packageName(specifier))) return true
    return kind === 'dynamic' && layer.loadsPackages === true
  }
  const target = resolve(path, specifier)
  const [, store] = layer.files.exec(path) ?? []
  const isOwn = layer.files.test(target) && layer.files.exec(target)?.[1] === store
  return isOwn || layer.may.some((allowed) => allowed.test(target))
}

/** @param {string} specifier */
function packageName(specifier) {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/**
 * @param {string} from
 * @param {string} specifier
 */
function resolve(from, specifier) {
  return posix.join(posix.dirname(from), specifier)
}

/**
 * Cycles at run time; types may refer to each other.
 * @param {ReadonlyMap<string, { imports: Import[] }>} files
 * @returns {string[]}
 */
function cycles(files) {
  /** @type {string[]} */
  const found = []
  const done = new Set()
  /**
   * @param {string} path
   * @param {string[]} trail
   */
  const visit = (path, trail) => {
    if (trail.includes(path)) {
      const cycle = [...trail.slice(trail.indexOf(path)), path]
      found.push(`src/${path}:1: no import cycles (${cycle.join(' → ')})`)
      return
    }
    if (done.has(path)) return
    const imports = files
      .get(path)
      ?.imports.filter(({ specifier, kind }) => specifier.startsWith('.') && kind === 'static')
    for (const { specifier } of imports ?? []) visit(resolve(path, specifier), [...trail, path])
    done.add(path)
  }
  for (const path of files.keys()) visit(path, [])
  return found
}

/**
 * @param {string} path
 * @param {string} text
 * @returns {{ imports: Import[], reExportsOnly: boolean }}
 */
function parse(path, text) {
  const { module, program } = parseSync(path, text)
  /** @type {Import[]} */
  const imports = []
  /**
   * @param {string} specifier
   * @param {number} offset
   * @param {Import['kind']} kind
   */
  const add = (specifier, offset, kind) =>
    imports.push({ specifier, line: text.slice(0, offset).split('\n').length, kind })

  for (const { moduleRequest, start, entries } of module.staticImports) {
    add(moduleRequest.value, start, kindOf(entries))
  }
  for (const { start, entries } of module.staticExports) {
    const [request] = entries.flatMap((entry) => entry.moduleRequest ?? [])
    if (request !== undefined) add(request.value, start, kindOf(entries))
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^(['"`])(.*)\1$/.exec(text.slice(moduleRequest.start, moduleRequest.end))
    if (literal?.[2] !== undefined) add(literal[2], moduleRequest.start, 'dynamic')
  }
  // `import('pg').Pool` in a type is in none of these lists.
  walk(program, (node) => {
    if (node.type === 'TSImportType')
      add(node.source?.value ?? node.argument?.literal?.value, node.start ?? 0, 'type')
  })
  return {
    imports,
    reExportsOnly: program.body.every(
      (statement) =>
        'source' in statement && statement.type.startsWith('Export') && statement.source !== null,
    ),
  }
}

/** @param {readonly { isType: boolean }[]} entries */
function kindOf(entries) {
  return entries.length > 0 && entries.every(({ isType }) => isType) ? 'type' : 'static'
}

/**
 * @param {unknown} node
 * @param {(node: any) => void} see
 */
function walk(node, see) {
  if (node === null || typeof node !== 'object') return
  if ('type' in node) see(node)
  for (const child of Object.values(node)) walk(child, see)
}

/** @returns {Map<string, string>} */
function sourcesOf() {
  const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  )
  return new Map(
    paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(root, 'src', path), 'utf8')]),
  )
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const broken = brokenLayerRules(sourcesOf())
  for (const line of broken) console.log(line)
  process.exitCode = broken.length === 0 ? 0 : 1
}

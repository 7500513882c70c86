import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'

/**
 * Who may import whom: the architecture as one table. A key is a folder under `src` (or the one file beside them); its
 * value lists what it may import besides itself. The longest key that fits a file is its layer; `*` stands for any one
 * folder, and two folders under it are two layers that do not know each other.
 * @type {Readonly<Record<string, readonly string[] | 'anything'>>}
 */
export const LAYERS = Object.freeze({
  core: [],
  ports: ['core'],
  // Connections to servers and files, for every layer that talks to one.
  drivers: ['core', 'ports'],
  // What the backends decide alike, written once.
  'backends/shared': ['core', 'ports'],
  'backends/*': ['core', 'ports', 'drivers', 'backends/shared'],
  source: ['core', 'ports'],
  // Inlets that need a driver have doors of their own, so that `millrace/source` opens without it.
  'source/redis': ['core', 'ports', 'drivers', 'source'],
  'source/nats': ['core', 'ports', 'drivers', 'source'],
  work: ['core', 'ports', 'source'],
  guild: ['core', 'ports', 'drivers', 'source', 'work'],
  ops: ['core', 'ports', 'source', 'work', 'guild'],
  dashboard: ['core', 'ports', 'source', 'work', 'guild', 'ops'],
  // The command line is an application: it joins engine and backend by the address that a person typed, and asks drivers
  // what no port tells (versions, clocks, settings of the server).
  cli: ['core', 'ports', 'drivers', 'source', 'work', 'guild', 'ops', 'ops/index.ts', 'dashboard', 'backends/*'],
  // Not listed by anybody: only tests and users import it.
  testing: 'anything',
  // These doors join layers that do not know each other: an engine with the memory backend, contracts with the adapter over
  // plain ports.
  'index.ts': ['types.ts', 'core', 'ports', 'ports/index.ts', 'source', 'work', 'backends/memory', 'backends/plain'],
  'types.ts': ['core', 'work', 'backends/memory'],
  'ports/index.ts': ['core', 'ports', 'backends/plain'],
  'guild/index.ts': ['core', 'work', 'guild', 'backends/memory', 'backends/plain'],
  'ops/index.ts': ['core', 'ports', 'work', 'ops', 'backends/plain'],
})

/**
 * Files that may import a module whose name is known only at run time, each with its reason. Everywhere else such an
 * import would slip past this check.
 * @type {Readonly<Record<string, string>>}
 */
const LOADS_BY_NAME = Object.freeze({
  'src/core/process/own-module.ts': "a guild's plugins are packages that its configuration names",
  'src/core/process/own-module.cjs': 'the same, as CommonJS',
  'src/cli/connect/load-redact.ts': 'the command line loads the module that `--redact` names',
})

/** @typedef {{ file: string, line: number, problem: string }} Violation */
/** @typedef {{ specifier: string | undefined, offset: number }} Import */

/**
 * Reads every module under `src` and holds its imports against {@link LAYERS}; examples may use the package's public
 * names only. Throws when there is nothing to read, since a check of nothing always passes.
 * @param {string} root the folder that holds `src`
 * @param {string} [packageName]
 * @returns {{ files: number, violations: Violation[] }}
 */
export function checkImports(root, packageName = 'millrace') {
  const sources = modulesUnder(join(root, 'src'))
  if (sources.length === 0) throw new Error(`No TypeScript module under ${join(root, 'src')}: nothing was checked.`)
  const examples = modulesUnder(join(root, 'examples'))
  /** @type {Violation[]} */
  const violations = []
  for (const path of [...sources, ...examples]) {
    const file = relative(root, path).split(sep).join('/')
    const text = readFileSync(path, 'utf8')
    /** @type {(offset: number, problem: string) => void} */
    const report = (offset, problem) => violations.push({ file, line: lineAt(text, offset), problem })
    const { program, errors } = parseSync(path, text)
    for (const error of errors) report(error.labels[0]?.start ?? 0, `does not parse: ${error.message}`)
    for (const found of importsOf(program)) {
      const problem = file.startsWith('src/')
        ? problemInSource(file, found.specifier, packageName)
        : problemInExample(file, found.specifier)
      if (problem !== undefined) report(found.offset, problem)
    }
    if (file.startsWith('src/') && layerOf(file.slice(4)) === undefined) report(0, unknownFolder(file.slice(4)))
  }
  return { files: sources.length + examples.length, violations }
}

/**
 * @param {string} file
 * @param {string | undefined} specifier
 * @param {string} packageName
 * @returns {string | undefined}
 */
function problemInSource(file, specifier, packageName) {
  if (specifier === undefined) {
    if (file in LOADS_BY_NAME) return undefined
    return 'imports a module whose name is computed, which cannot be checked: write the name out, or list the file in LOADS_BY_NAME with its reason'
  }
  if (specifier === packageName || specifier.startsWith(`${packageName}/`)) {
    return `imports the package by its own name ("${specifier}"): inside src, import the file`
  }
  if (!specifier.startsWith('.')) {
    return /^(file:|\/)/.test(specifier) ? `imports "${specifier}" by an absolute path` : undefined
  }
  const target = join(dirname(file), specifier).split(sep).join('/')
  if (!target.startsWith('src/')) return `imports "${specifier}", which lies outside src`
  const from = layerOf(file.slice(4))
  const to = layerOf(target.slice(4).replace(/\.(m?)jsx?$/, '.$1ts'))
  if (from === undefined) return undefined // The file itself is reported once, as an unknown folder.
  if (to === undefined) return `imports "${specifier}": ${unknownFolder(target.slice(4))}`
  if (from.id === to.id) return undefined
  const allowed = LAYERS[from.key]
  if (allowed === 'anything' || allowed?.includes(to.id) || allowed?.includes(to.key)) return undefined
  return `${from.id} must not import ${to.id} ("${specifier}"); it may import ${allowed?.join(', ') || 'no other folder'}`
}

/**
 * @param {string} file
 * @param {string | undefined} specifier
 * @returns {string | undefined}
 */
function problemInExample(file, specifier) {
  if (specifier === undefined || !specifier.startsWith('.')) return undefined
  const target = join(dirname(file), specifier).split(sep).join('/')
  if (target.startsWith('examples/')) return undefined
  return `imports "${specifier}": an example uses what a user has, the package's public names`
}

/**
 * The layer of a path under `src`: its key in the table, and its id with `*` filled in.
 * @param {string} path
 * @returns {{ key: string, id: string } | undefined}
 */
function layerOf(path) {
  if (path in LAYERS && path.includes('.')) return { key: path, id: path }
  const [first = '', second, ...rest] = path.split('/')
  if (second === undefined) return undefined
  if (rest.length > 0) {
    const nested = `${first}/${second}`
    if (nested in LAYERS) return { key: nested, id: nested }
    if (`${first}/*` in LAYERS) return { key: `${first}/*`, id: nested }
  }
  return first in LAYERS ? { key: first, id: first } : undefined
}

/** @param {string} path */
const unknownFolder = (path) =>
  `src/${path.includes('/') ? dirname(path) : path} belongs to no layer: move it, or add its folder to LAYERS in scripts/lib/import-rules.mjs`

/**
 * Every import of a module, however it is spelt: static, type-only, re-export, `import()`, `typeof import()` in a type,
 * `import x = require()` and `require()`.
 * @param {import('oxc-parser').Program} program
 * @returns {Import[]}
 */
function importsOf(program) {
  /** @type {Import[]} */
  const found = []
  /** @type {(node: any) => void} */
  const add = (node) => {
    if (node) found.push({ specifier: textOf(node), offset: node.start })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
    TSExternalModuleReference: (node) => add(node.expression),
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier' && node.callee.name === 'require') add(node.arguments[0])
    },
  }).visit(program)
  return found
}

/**
 * @param {any} node
 * @returns {string | undefined} the text of a literal; undefined when it is computed
 */
function textOf(node) {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0].value.cooked
  return undefined
}

/** @type {(text: string, offset: number) => number} */
const lineAt = (text, offset) => text.slice(0, offset).split('\n').length

/**
 * @param {string} folder
 * @returns {string[]}
 */
function modulesUnder(folder) {
  /** @type {import('node:fs').Dirent[]} */
  let entries
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return []
    throw error
  }
  return entries
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => resolve(entry.parentPath, entry.name))
    .sort()
}

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { root } from '../root.mjs'
import { docBefore, signatureOf } from './signature.mjs'

/**
 * A name that a door lists, as its source declares it.
 * @typedef {object} Exported
 * @property {string} name
 * @property {'function' | 'class' | 'constant' | 'type'} kind
 * @property {string} file where it is declared, from the root of the repository
 * @property {string} signature the declaration without bodies
 * @property {string | undefined} doc the text of its doc comment
 */

/** @typedef {import('oxc-parser').Program} Program */
/** @typedef {{ program: Program, comments: readonly import('oxc-parser').Comment[], text: string }} Parsed */
/** @typedef {Exclude<import('oxc-parser').ExportNamedDeclaration['declaration'], null>} Declaration */

/** @type {Map<string, Parsed>} */
const parsed = new Map()

/**
 * What a module exports, in the order in which it lists it. `index.ts` files are hand-written lists without `export *`, so
 * that a name can be followed from list to list to where it is declared, by the syntax alone.
 * @param {string} file from the root of the repository
 * @returns {Exported[]}
 */
export function exportsOf(file) {
  const names = []
  for (const node of parse(file).program.body) {
    if (node.type === 'ExportAllDeclaration')
      throw new Error(`${file}: "export *" hides what is promised. List the names.`)
    if (node.type !== 'ExportNamedDeclaration') continue
    if (node.declaration !== null) names.push(...namesOf(node.declaration))
    for (const { exported } of node.specifiers) names.push(nameOf(exported))
  }
  return [...new Set(names)].map((name) => declarationOf(file, name, name))
}

/**
 * @param {string} file
 * @param {string} name as that file knows it
 * @param {string} as as the door calls it
 * @returns {Exported}
 */
function declarationOf(file, name, as) {
  const module = parse(file)
  const found = module.program.body.flatMap((node) => {
    const declaration = node.type === 'ExportNamedDeclaration' ? (node.declaration ?? undefined) : node
    if (declaration === undefined || !namesOf(declaration).includes(name)) return []
    return [{ declaration: /** @type {Declaration} */ (declaration), start: node.start }]
  })
  if (found.length > 0) return described(file, module, found, as)
  for (const node of module.program.body) {
    if (node.type === 'ExportNamedDeclaration') {
      const listed = node.specifiers.find(({ exported }) => nameOf(exported) === name)
      if (listed === undefined) continue
      const local = nameOf(listed.local)
      if (node.source !== null) return declarationOf(besides(file, node.source.value), local, as)
      if (local !== name) return declarationOf(file, local, as)
    }
    if (node.type === 'ImportDeclaration') {
      const listed = node.specifiers.find((specifier) => specifier.local.name === name)
      if (listed?.type === 'ImportSpecifier') {
        return declarationOf(besides(file, node.source.value), nameOf(listed.imported), as)
      }
    }
  }
  throw new Error(`${file} lists "${name}", and nothing there declares it.`)
}

/**
 * @param {string} file
 * @param {Parsed} module
 * @param {readonly { declaration: Declaration, start: number }[]} found an overloaded function has several
 * @param {string} name
 * @returns {Exported}
 */
function described(file, { text, comments }, found, name) {
  const docs = found.map(({ start }) => docBefore(text, comments, start)).filter((doc) => doc !== undefined)
  const overloads = found.filter(({ declaration }) => declaration.type === 'TSDeclareFunction')
  const shown = overloads.length > 0 ? overloads : found
  const signature = shown.map(({ declaration }) => signatureOf(text, comments, declaration, name)).join('\n')
  return { name, kind: kindOf(found.map(({ declaration }) => declaration.type)), file, signature, doc: docs[0] }
}

/**
 * @param {readonly string[]} types
 * @returns {Exported['kind']}
 */
function kindOf(types) {
  if (types.some((type) => type === 'FunctionDeclaration' || type === 'TSDeclareFunction')) return 'function'
  if (types.includes('ClassDeclaration')) return 'class'
  return types.includes('VariableDeclaration') ? 'constant' : 'type'
}

/**
 * @param {Program['body'][number]} node
 * @returns {string[]}
 */
function namesOf(node) {
  if (node.type === 'VariableDeclaration') {
    return node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
  }
  if ('id' in node && node.id !== null && node.id.type === 'Identifier') return [node.id.name]
  return []
}

/** @param {import('oxc-parser').ModuleExportName} node */
function nameOf(node) {
  return node.type === 'Literal' ? node.value : node.name
}

/**
 * @param {string} file
 * @param {string} specifier
 */
function besides(file, specifier) {
  if (!specifier.startsWith('.'))
    throw new Error(`${file} lists names of "${specifier}": wrap them, or they are not ours to promise.`)
  return resolve('/', dirname(file), specifier).slice(1).replace(/\.js$/, '.ts')
}

/** @param {string} file */
function parse(file) {
  let module = parsed.get(file)
  if (module === undefined) {
    const path = join(root, file)
    if (!existsSync(path)) throw new Error(`${file} does not exist.`)
    const text = readFileSync(path, 'utf8')
    const { program, comments, errors } = parseSync(path, text)
    if (errors[0] !== undefined) throw new Error(`${file} does not parse: ${errors[0].message}`)
    module = { program, comments, text }
    parsed.set(file, module)
  }
  return module
}

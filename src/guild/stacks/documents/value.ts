import { StacksValueError } from '../errors.js'

/** What a document is made of: exactly what JSON can express. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** The least that a document is: an object with a non-empty string `id`, made by its author. */
export interface BookEntry {
  readonly id: string
}

/** A canonical document, as backends keep it. */
export type Doc = { readonly id: string } & { readonly [key: string]: Json }

/** Deeper values are refused: SQLite reads JSON a thousand levels deep, and no more. */
const MAX_DEPTH = 500

/** Longer ids do not fit into an index of PostgreSQL. */
const MAX_ID_BYTES = 1_024

/** A key that assignment would treat as the prototype. */
const PROTO = '__proto__'

/**
 * The value as JSON keeps it, in a private copy: members that are `undefined` disappear, `toJSON` is obeyed, `-0` is 0. What
 * JSON would lose silently (functions, `NaN`, `undefined` in an array, a Map) or cannot express (bigint, cycles) is refused
 * with its path; so are U+0000 and lone surrogates, which not every database can keep.
 */
function canonical(value: unknown, path: string): Json {
  const result = copy(value, path, '', [])
  if (result === undefined) throw new StacksValueError(path, 'is undefined, which JSON cannot express.')
  return result
}

/** A document, checked and canonical. */
export function canonicalDoc(value: unknown, maxBytes: number): Doc {
  const doc = canonical(value, 'doc')
  if (typeof doc !== 'object' || doc === null || Array.isArray(doc))
    throw new StacksValueError('doc', 'must be an object with a string `id`.')
  const entry = doc as Doc
  checkId(entry.id, 'doc.id')
  checkSize(entry, maxBytes)
  return entry
}

/** The id itself when it can be one. */
export function checkId(id: unknown, path: string): string {
  if (typeof id !== 'string' || id === '') throw new StacksValueError(path, 'must be a non-empty string.')
  checkText(id, path)
  if (id.length * 3 > MAX_ID_BYTES && Buffer.byteLength(id) > MAX_ID_BYTES)
    throw new StacksValueError(path, `must have at most ${MAX_ID_BYTES} bytes, has ${Buffer.byteLength(id)}.`)
  return id
}

/** Throws when the document is larger than the store allows. */
export function checkSize(doc: Doc, maxBytes: number): void {
  const text = JSON.stringify(doc)
  // No character takes more than three bytes per UTF-16 unit, so short texts need not be counted.
  if (text.length * 3 <= maxBytes) return
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes)
    throw new StacksValueError('doc', `has ${bytes} bytes, more than maxDocumentBytes (${maxBytes}) allows.`, { bytes })
}

/** The fields of a patch, canonical; a field given as `undefined` is to be removed. */
export interface PatchFields {
  readonly set: { readonly [key: string]: Json }
  readonly remove: readonly string[]
}

/** Reads the fields of a patch. An `id` among them is ignored: a document keeps its own. */
export function canonicalFields(fields: unknown): PatchFields {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new StacksValueError('fields', 'must be an object.')
  const remove = Object.keys(fields).filter(
    (key) => key !== 'id' && (fields as Record<string, unknown>)[key] === undefined,
  )
  const { id: _id, ...set } = canonical(fields, 'fields') as { readonly [key: string]: Json }
  return { set, remove }
}

/** A shallow merge of top-level fields. */
export function patched(doc: Doc, { set, remove }: PatchFields): Doc {
  const merged: Record<string, Json> = {}
  for (const [key, value] of Object.entries(doc)) if (!remove.includes(key)) define(merged, key, value)
  for (const [key, value] of Object.entries(set)) define(merged, key, value)
  return merged as Doc
}

/** A private copy of a canonical value. */
export function privateCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(privateCopy) as T
  const made: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) define(made, key, privateCopy(member))
  return made as T
}

/**
 * Text that every backend can keep: U+0000 and lone surrogates become U+FFFD. For text of foreign origin, such as the output
 * of a program; documents with such characters are refused otherwise.
 * @example
 * ```ts
 * await book.put({ id: 'run-1', output: storableText(stderr) })
 * ```
 */
export function storableText(text: string): string {
  return text.replace(EVERY_UNSTORABLE, '\ufffd')
}

/** Whether every backend can keep the text. */
export function isStorableText(text: string): boolean {
  return !UNSTORABLE.test(text)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for U+0000.
const UNSTORABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/
const EVERY_UNSTORABLE = new RegExp(UNSTORABLE, 'g')

function copy(given: unknown, path: string, key: string, above: readonly object[]): Json | undefined {
  const value = hasToJson(given) ? given.toJSON(key) : given
  switch (typeof value) {
    case 'string':
      checkText(value, path)
      return value
    case 'number':
      if (!Number.isFinite(value)) throw new StacksValueError(path, `is ${value}, which JSON cannot express.`)
      return value === 0 ? 0 : value
    case 'boolean':
    case 'undefined':
      return value
    case 'object':
      if (value === null) return null
      return copyObject(value, path, above)
    default:
      throw new StacksValueError(path, `is a ${typeof value}, which JSON cannot express.`)
  }
}

function copyObject(value: object, path: string, above: readonly object[]): Json {
  if (above.includes(value)) throw new StacksValueError(path, 'contains itself, which JSON cannot express.')
  if (above.length >= MAX_DEPTH) throw new StacksValueError(path, `is more than ${MAX_DEPTH} levels deep.`)
  if (value instanceof Map || value instanceof Set || value instanceof Promise || ArrayBuffer.isView(value))
    throw new StacksValueError(path, `is a ${value.constructor.name}, which JSON would turn into something else.`)
  const within = [...above, value]
  if (Array.isArray(value)) {
    return Array.from(value, (member, index) => {
      const at = `${path}[${index}]`
      const copied = copy(member, at, String(index), within)
      if (copied === undefined) throw new StacksValueError(at, 'is undefined, which JSON cannot express in an array.')
      return copied
    })
  }
  const made: Record<string, Json> = {}
  for (const [key, member] of Object.entries(value)) {
    checkText(key, `a name in ${path}`)
    const copied = copy(member, `${path}.${key}`, key, within)
    if (copied !== undefined) define(made, key, copied)
  }
  return made
}

function checkText(text: string, path: string): void {
  if (isStorableText(text)) return
  throw new StacksValueError(
    path,
    'contains U+0000 or half of a surrogate pair, which not every database can keep. storableText() replaces them.',
  )
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return typeof value === 'object' && value !== null && typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

/** Assignment to `__proto__` would set the prototype instead of a member. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === PROTO) Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
  else target[key] = value
}

/** A document from the text that was stored: what we wrote as JSON is JSON, and has an id. */
export const parsed = (text: string): Doc => JSON.parse(text) as Doc

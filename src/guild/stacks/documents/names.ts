import { StacksNameError } from '../errors.js'

/** A book is addressed by its owner and its name. */
export interface BookRef {
  readonly ownerId: string
  readonly book: string
}

/** What a plugin declares about one of its books. */
export interface BookSchema {
  /** Fields, or tuples of fields, that queries ask for: `['phase', ['parentId', 'phase'], 'status.spider.rigId']`. */
  readonly indexes?: readonly (string | readonly string[])[]
}

/** An index, as parsed: its fields, each as the path into a document. */
export type IndexFields = readonly FieldPath[]

/** The way into a document: `a.b` is `['a', 'b']`. It never enters an array. */
export type FieldPath = readonly string[]

/** More would not fit into one entry of an index on every backend. */
const MAX_INDEX_FIELDS = 8

/** Checks a book's name and its owner's. */
export function bookRef(ownerId: unknown, book: unknown): BookRef {
  if (typeof ownerId !== 'string' || !/^[A-Za-z0-9@_./-]{1,200}$/.test(ownerId))
    throw new StacksNameError('ownerId', 'the id of a plugin (letters, digits and @ _ . / -)', ownerId)
  if (typeof book !== 'string' || !/^[A-Za-z0-9_-]{1,200}$/.test(book))
    throw new StacksNameError('A book name', 'letters, digits, _ and - only', book)
  return { ownerId, book }
}

/** One string for both names. `/` cannot stand in a book's name, so the last one divides them. */
export function bookKey(ref: BookRef): string {
  return `${ref.ownerId}/${ref.book}`
}

/** Reads `a.b` as the path `['a', 'b']`. */
export function fieldPath(field: unknown): FieldPath {
  if (typeof field !== 'string' || field.length > 500 || !/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/.test(field))
    throw new StacksNameError('A field name', 'letters, digits, _ and -, with dots between names', field)
  return field.split('.')
}

/** Reads the indexes of a book, each once. */
export function indexesOf(schema: BookSchema, ref: BookRef): IndexFields[] {
  if (schema.indexes !== undefined && !Array.isArray(schema.indexes))
    throw new StacksNameError(`indexes of ${bookKey(ref)}`, 'a list of fields or tuples of fields', schema.indexes)
  const found = new Map<string, IndexFields>()
  for (const entry of schema.indexes ?? []) {
    const fields: readonly unknown[] = Array.isArray(entry) ? entry : [entry]
    if (fields.length === 0 || fields.length > MAX_INDEX_FIELDS)
      throw new StacksNameError(`An index of ${bookKey(ref)}`, `of 1 to ${MAX_INDEX_FIELDS} fields`, entry)
    const paths = fields.map(fieldPath)
    found.set(indexKey(paths), paths)
  }
  return [...found.values()]
}

/** One string for an index, for a catalogue: no two indexes of a book share it, since field names have no commas. */
export function indexKey(fields: IndexFields): string {
  return fields.map((path) => path.join('.')).join(',')
}

/** Checks the name of a durable watcher. */
export function watcherName(name: unknown): string {
  if (typeof name !== 'string' || !/^[A-Za-z0-9@_./:-]{1,200}$/.test(name))
    throw new StacksNameError('durable', 'letters, digits and @ _ . / : - only', name)
  return name
}

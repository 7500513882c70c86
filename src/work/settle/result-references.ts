import { MillraceError } from '../../core/error.js'
import { newId } from '../../core/ids.js'
import { withInput } from '../define/built-work.js'
import type { Work } from '../define/work.js'

/** A program computed with a result that does not exist yet. */
export class ResultNotKnownError extends MillraceError {
  constructor() {
    super(
      'RESULT_NOT_KNOWN',
      '.next((done) => …) is called before the works have run, to build what comes next: their results are known only when the gate ' +
        'opens. Pass `done`, or parts of it, on as they are, and compute with them in the handler of the work that gets them.',
    )
  }
}

/** Where a value comes from: the id of an item, and the way into its result. */
type Source = readonly [id: string, ...path: string[]]

const SOURCE: unique symbol = Symbol.for('millrace.result-source') as never

/** Stands for the result of a work, or for a part of it, until the work has run. */
export function referenceTo(...source: Source): unknown {
  const known = new Map<string, unknown>()
  const unknown = (): never => {
    throw new ResultNotKnownError()
  }
  // Over a function, so that calling a method of a result is told apart from reading it.
  return new Proxy(() => undefined, {
    get: (_, key) => {
      if (key === SOURCE) return source
      // A promise that resolves with it asks for this.
      if (key === 'then') return undefined
      if (typeof key === 'symbol' || key === 'toJSON') return unknown()
      if (!known.has(key)) known.set(key, referenceTo(...source, key))
      return known.get(key)
    },
    apply: unknown,
    construct: unknown,
    has: unknown,
    ownKeys: unknown,
    set: unknown,
  })
}

function sourceOf(value: unknown): Source | undefined {
  // A proxy of our own is over a function, and answers this without an error.
  return typeof value === 'function' ? (value as { readonly [SOURCE]?: Source })[SOURCE] : undefined
}

/** The same work, its references replaced by texts that its codec can store. The mark is new each time: no input contains it. */
export function withStoredReferences(work: Work): Work {
  const mark = newId()
  let isMarked = false
  const input = replaced(work.input, (value) => {
    const source = sourceOf(value)
    if (source === undefined) return undefined
    isMarked = true
    return { value: mark + JSON.stringify(source) }
  })
  return isMarked ? withInput(work, input, mark) : work
}

/** The ids of the items whose results an input needs. */
export function referredIds(input: unknown, mark: string): readonly string[] {
  const ids = new Set<string>()
  replaced(input, (value) => {
    const source = storedSource(value, mark)
    if (source !== undefined) ids.add(source[0])
    return undefined
  })
  return [...ids]
}

/** The input with the results that it refers to. What an item did not return is undefined. */
export function withResults(input: unknown, mark: string, results: ReadonlyMap<string, unknown>): unknown {
  return replaced(input, (value) => {
    const source = storedSource(value, mark)
    if (source === undefined) return undefined
    const [id, ...path] = source
    return { value: path.reduce<unknown>((at, key) => (at == null ? undefined : Object(at)[key]), results.get(id)) }
  })
}

function storedSource(value: unknown, mark: string): Source | undefined {
  return typeof value === 'string' && value.startsWith(mark)
    ? (JSON.parse(value.slice(mark.length)) as Source)
    : undefined
}

type Replace = (value: unknown) => { readonly value: unknown } | undefined

/** A copy in which `replace` has replaced values, at any depth of lists, plain objects, maps and sets. */
function replaced(value: unknown, replace: Replace, above: readonly unknown[] = []): unknown {
  const found = replace(value)
  if (found !== undefined) return found.value
  // A cycle is left for the codec to refuse.
  if (typeof value !== 'object' || value === null || above.includes(value)) return value
  const inside = (one: unknown) => replaced(one, replace, [...above, value])
  if (Array.isArray(value)) return value.map(inside)
  if (value instanceof Map) return new Map([...value].map(([key, one]) => [inside(key), inside(one)]))
  if (value instanceof Set) return new Set([...value].map(inside))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inside(one)]))
}

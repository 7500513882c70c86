/** One header as its sender spelt it. */
export interface Header {
  readonly key: string
  readonly value: string
}

/** What headers can be made from: pairs, `{ key, value }` records, other headers, or a plain object. */
export type HeadersInit =
  | Iterable<readonly [key: string, value: string] | Header>
  | Readonly<Record<string, string>>
  | undefined

/**
 * The headers of a message: an immutable, ordered list of pairs in which a name may occur more than once. Names are looked
 * up without regard to case, because brokers and producers disagree on it, and keep the spelling of their sender.
 *
 * @example
 * ```ts
 * const headers = new Headers([['Content-Type', 'application/json']])
 * headers.get('content-type') // 'application/json'
 * headers.with('x-trace', 'abc').keys() // ['Content-Type', 'x-trace']
 * ```
 */
export class Headers implements Iterable<Header> {
  /** No headers at all. */
  static readonly empty: Headers = new Headers()

  readonly #entries: readonly Header[]
  /** Names in lower case, made on the first lookup: most messages are never asked. */
  #names: readonly string[] | undefined

  constructor(init?: HeadersInit) {
    this.#entries = Object.freeze(entriesOf(init))
  }

  get size(): number {
    return this.#entries.length
  }

  /** The first value under this name. */
  get(key: string): string | undefined {
    const name = key.toLowerCase()
    const index = this.#lowerNames().indexOf(name)
    return index < 0 ? undefined : this.#entries[index]!.value
  }

  /** Every value under this name, in order; none: `[]`. */
  getAll(key: string): readonly string[] {
    const name = key.toLowerCase()
    const names = this.#lowerNames()
    return this.#entries.filter((_, i) => names[i] === name).map((entry) => entry.value)
  }

  has(key: string): boolean {
    return this.#lowerNames().includes(key.toLowerCase())
  }

  /** The names as spelt, in order, each as often as it occurs. */
  keys(): readonly string[] {
    return this.#entries.map((entry) => entry.key)
  }

  /** All pairs in order. The list and its pairs are frozen. */
  entries(): readonly Header[] {
    return this.#entries
  }

  /** A copy with exactly this value under the name: in the place of its first occurrence, or at the end. */
  with(key: string, value: string): Headers {
    const entry = header(key, value)
    const name = key.toLowerCase()
    const names = this.#lowerNames()
    const first = names.indexOf(name)
    if (first < 0) return new Headers([...this.#entries, entry])
    return new Headers(
      this.#entries.map((old, i) => (i === first ? entry : old)).filter((_, i) => i === first || names[i] !== name),
    )
  }

  /** A copy with one more value under the name, whatever is there already. */
  withAdded(key: string, value: string): Headers {
    return new Headers([...this.#entries, header(key, value)])
  }

  /** A copy without this name; the same object when it has none. */
  without(key: string): Headers {
    const name = key.toLowerCase()
    const names = this.#lowerNames()
    return names.includes(name) ? new Headers(this.#entries.filter((_, i) => names[i] !== name)) : this
  }

  [Symbol.iterator](): Iterator<Header> {
    return this.#entries[Symbol.iterator]()
  }

  /** The pairs, so that logs and stores do not show `{}`. `new Headers(parsed)` reads them back. */
  toJSON(): readonly Header[] {
    return this.#entries
  }

  #lowerNames(): readonly string[] {
    this.#names ??= this.#entries.map((entry) => entry.key.toLowerCase())
    return this.#names
  }
}

function entriesOf(init: HeadersInit): Header[] {
  if (init === undefined) return []
  if (init instanceof Headers) return [...init.entries()]
  if (init === null || typeof init !== 'object')
    throw new TypeError(
      `new Headers(init): init must be pairs or an object, got ${init === null ? 'null' : typeof init}`,
    )
  const pairs = Symbol.iterator in init ? (init as Iterable<readonly [string, string] | Header>) : Object.entries(init)
  return Array.from(pairs, (pair) => {
    if (Array.isArray(pair)) return header(pair[0], pair[1])
    const { key, value } = pair as Header
    // A frozen pair of strings can be shared: it cannot be changed.
    return Object.isFrozen(pair) && typeof key === 'string' && typeof value === 'string'
      ? (pair as Header)
      : header(key, value)
  })
}

function header(key: unknown, value: unknown): Header {
  if (typeof key !== 'string') throw new TypeError(`a header's key must be a string, got ${typeof key}`)
  if (typeof value !== 'string')
    throw new TypeError(`the header "${key}" must have a string as its value, got ${typeof value}; convert it first`)
  return Object.freeze({ key, value })
}

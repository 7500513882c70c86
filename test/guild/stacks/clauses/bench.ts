import assert from 'node:assert/strict'
import {
  type BookSchema,
  type ChangeEvent,
  openStacks,
  type Stacks,
  type StacksBackend,
  type StacksOptions,
  type StacksWarning,
  type WatchOptions,
} from 'millrace/guild/stacks'
import type { MaybePromise } from '../../../../src/core/time/time.js'

/** A store as the suite needs it: empty, and reachable from more than one process. */
export interface StacksUnderTest {
  /** A backend on the data of this store. Each call is one more process on it. */
  backend(): MaybePromise<StacksBackend>
  close?(): MaybePromise<void>
}

/** A document of the suite: anything goes. */
export type Any = { readonly id: string; readonly [key: string]: unknown }

/** What a clause works with. */
export class StacksBench {
  readonly #subject: StacksUnderTest
  readonly #opened: Stacks[] = []
  readonly #backends: StacksBackend[] = []
  readonly warnings: StacksWarning[] = []

  constructor(subject: StacksUnderTest) {
    this.#subject = subject
  }

  /** One process: a store whose books `a`, `b` and `c` of owner `o` are declared; `setup` runs before it is sealed. */
  async process(
    setup: (stacks: Stacks) => MaybePromise<void> = () => undefined,
    options: StacksOptions & { readonly books?: Readonly<Record<string, BookSchema>>; readonly seal?: boolean } = {},
  ): Promise<Stacks> {
    const { books = { a: {}, b: {}, c: {} }, seal = true, ...rest } = options
    const backend = await this.#subject.backend()
    const stacks = await openStacks({ backend, onWarning: (warning) => this.warnings.push(warning), ...rest })
    this.#opened.push(stacks)
    await stacks.declare('o', books)
    await setup(stacks)
    if (seal) await stacks.seal()
    return stacks
  }

  /** Another open backend on the store, for what the API does not show. */
  async backend(): Promise<StacksBackend> {
    const backend = await this.#subject.backend()
    await backend.open({ home: process.cwd() })
    this.#backends.push(backend)
    return backend
  }

  async close(): Promise<void> {
    for (const backend of this.#backends) await backend.close()
    for (const stacks of this.#opened.reverse()) await stacks.close()
    await this.#subject.close?.()
  }
}

/** Rejects, with an error of this code; returns it. */
export async function rejectsWith(run: Promise<unknown>, code: string): Promise<Error> {
  const error = await run.then(
    (value) => assert.fail(`expected a rejection with ${code}, but it resolved with ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Error)
  assert.equal((error as { code?: unknown }).code, code, error.message)
  return error
}

/** Watches a book and collects its events. */
export function record(stacks: Stacks, book: string, options?: WatchOptions): ChangeEvent<Any>[] {
  const seen: ChangeEvent<Any>[] = []
  stacks.watch<Any>('o', book, (event) => void seen.push(event), options)
  return seen
}

/** The phase-2 option, spelt out once. */
export const AFTER: WatchOptions = { failOnError: false }

export const ids = (docs: readonly { readonly id: string }[]): string[] => docs.map(({ id }) => id)

/** Gives everything that is ready its turn. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

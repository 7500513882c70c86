import { PgMissingError } from './errors.js'

/** What we use of `pg`: so little that its types are not part of ours. */
export interface PgClientLike {
  connect?(): Promise<unknown>
  query(config: PgQuery): Promise<{ readonly rows: unknown[] }>
  // biome-ignore lint/suspicious/noExplicitAny: an emitter's listeners take whatever the event carries.
  on(event: string, listener: (...args: any[]) => void): unknown
  release?(error?: Error | boolean): void
  end?(): Promise<void>
  unref?(): void
}

export interface PgQuery {
  readonly name?: string
  readonly text: string
  readonly values?: unknown[]
  readonly rowMode?: 'array'
}

/** A pool of `pg`, ours or the user's. */
export interface PgPoolLike {
  connect(): Promise<PgClientLike>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: PgClientLike) => void): unknown
  end(): Promise<void>
}

interface PgLibrary {
  readonly Pool: new (config: object) => PgPoolLike
  readonly Client: new (config: object) => PgClientLike
}

let loaded: Promise<PgLibrary> | undefined

/** Loads the library when it is first needed, so that the door opens without it. */
export function pgLibrary(): Promise<PgLibrary> {
  loaded ??= import('pg').then(
    (module) => (module.default ?? module) as unknown as PgLibrary,
    (cause: unknown) => {
      loaded = undefined
      throw new PgMissingError({ cause })
    },
  )
  return loaded
}

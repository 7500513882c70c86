import type { At, Ms } from '../../core/time/time.js'
import type { Ops } from '../../ops/api.js'
import type { Address } from './address.js'
import type { Needs } from './ops-on.js'

/** The tables of one part of Millrace on this backend. */
export interface StoragePart {
  /** What they are for. */
  readonly part: 'work' | 'guild'
  /** 0: they do not exist. */
  readonly version: number
  /** The lowest version of a program that can work with them. */
  readonly minReader: number
  /** The version that this program creates. */
  readonly latest: number
}

/** A server setting that endangers accepted work. */
export interface Danger {
  readonly code: string
  readonly text: string
  readonly remedy: string
}

/** What the server reports about itself. */
export interface ServerFacts {
  /** `PostgreSQL 15.8`. */
  readonly server: string
  /** Its own time; undefined if it is on this machine. */
  readonly at?: At
  /** When it was asked, by the local clock, and how long the answer took. */
  readonly askedAt: At
  readonly tookMs: Ms
  /** Empty if the storage has no versions. */
  readonly storage: readonly StoragePart[]
  readonly dangers: readonly Danger[]
}

/** The migration of one part's tables. */
export interface Migrated {
  readonly part: StoragePart['part']
  readonly from: number
  readonly to: number
}

/** A connected backend. Only {@link Connected.migrate} creates anything. */
export interface Connected {
  readonly kind: Address['kind']
  /** Its address, safe to show. */
  readonly name: string
  /** Ops on it; rejects if the tables do not exist. */
  ops(needs: Needs): Promise<Ops>
  facts(): Promise<ServerFacts>
  /** Migrates the tables to the version of this program. Empty if the storage has no versions. */
  migrate(): Promise<readonly Migrated[]>
  close(): Promise<void>
}

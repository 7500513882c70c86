import type { At, Ms } from '../../core/time.js'
import type { Ops } from '../../ops/api.js'
import type { Address } from './address.js'
import type { Needs } from './ops-on.js'

/** The tables of one part of the package, on this backend. */
export interface StoragePart {
  /** What they are for. */
  readonly part: 'work' | 'guild'
  /** 0: they are not there. */
  readonly version: number
  /** The lowest version of a program that can work with them. */
  readonly minReader: number
  /** The version that this program makes. */
  readonly latest: number
}

/** A setting that endangers what was accepted. */
export interface Danger {
  readonly code: string
  readonly text: string
  readonly remedy: string
}

/** What the server says of itself. */
export interface ServerFacts {
  /** `PostgreSQL 15.8`. */
  readonly server: string
  /** Its own time; undefined where it is the time of this machine. */
  readonly at?: At
  /** When it was asked, here, and how long the answer took. It was given somewhere in between. */
  readonly askedAt: At
  readonly tookMs: Ms
  /** Empty where storage has no versions. */
  readonly storage: readonly StoragePart[]
  readonly dangers: readonly Danger[]
}

/** What became of one part's tables. */
export interface Migrated {
  readonly part: StoragePart['part']
  readonly from: number
  readonly to: number
}

/** A backend that can be talked to. Nothing is created before {@link Reached.migrate}. */
export interface Reached {
  readonly kind: Address['kind']
  /** Its address, safe to show. */
  readonly name: string
  /** What can be asked of it; rejects where the tables are not there. */
  ops(needs: Needs): Promise<Ops>
  facts(): Promise<ServerFacts>
  /** Brings the tables to the version of this program. Empty where storage has no versions. */
  migrate(): Promise<readonly Migrated[]>
  close(): Promise<void>
}

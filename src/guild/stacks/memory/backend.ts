import { optionsObject } from '../../../core/options.js'
import { type Clock, systemClock } from '../../../core/time/clock.js'
import type { Ms } from '../../../core/time/time.js'
import type { BackendReads, BackendTx, Outbox, StacksBackend, Writers } from '../backend.js'
import { type BookRef, bookKey } from '../documents/names.js'
import { MemoryOutbox } from './outbox.js'
import { MemoryReads } from './reads.js'
import { MemorySpace } from './space.js'
import { MemoryTx } from './tx.js'

/** Options of `memoryStacks`. */
export interface MemoryStacksOptions {
  /** Share one between backends, and they are two processes on the same data. Default: a new one. */
  readonly space?: MemorySpace
  readonly clock?: Clock
}

/**
 * Documents in memory, for tests and trials: the whole contract, real isolation, gone with the process. A transaction costs
 * what it touches; a query reads every document of its book.
 */
export function memoryStacks(given?: MemoryStacksOptions): StacksBackend {
  const options = optionsObject('memoryStacks', given, ['space', 'clock'])
  return new MemoryBackend(options.space ?? new MemorySpace(), options.clock ?? systemClock)
}

class MemoryBackend implements StacksBackend {
  readonly name = 'memory'
  readonly isExclusive = true
  readonly reads: BackendReads
  readonly outbox: Outbox
  readonly writers: Writers
  readonly #space: MemorySpace

  constructor(space: MemorySpace, clock: Clock) {
    this.#space = space
    this.reads = new MemoryReads(space, new Map())
    this.outbox = new MemoryOutbox(space, clock)
    this.writers = writersOf(space, clock)
  }

  async open(): Promise<void> {
    // Nothing to open: the space is there.
  }

  async close(): Promise<void> {
    // The space may be another backend's too.
  }

  async ensureBook(ref: BookRef): Promise<void> {
    const key = bookKey(ref)
    if (!this.#space.books.has(key)) this.#space.books.set(key, new Map())
  }

  async begin({ readOnly }: { readonly readOnly: boolean }): Promise<BackendTx> {
    const space = this.#space
    const overlay = new Map()
    if (!readOnly) return new MemoryTx(space, overlay, await space.lock.take())
    space.snapshots.add(overlay)
    // A snapshot has nothing to write; forgetting it is its end.
    const snapshot = new MemoryTx(space, overlay, () => space.snapshots.delete(overlay))
    snapshot.commit = () => snapshot.rollback()
    return snapshot
  }
}

function writersOf({ writers }: MemorySpace, clock: Clock): Writers {
  return {
    async register(instance: string, fingerprint: string, leaseMs: Ms) {
      writers.set(instance, { fingerprint, until: clock.now() + leaseMs })
      return [...writers]
        .filter(([id, { until }]) => id !== instance && until > clock.now())
        .map(([, writer]) => writer.fingerprint)
    },
    async leave(instance: string) {
      writers.delete(instance)
    },
  }
}

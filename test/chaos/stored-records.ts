import { ownedBy } from '../../src/ports/find-ledger.js'
import type { ItemView } from '../../src/ports/inspect.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Backend } from '../../src/ports/ports.js'

const CHUNK = 500

export type StoredGroup = NonNullable<Awaited<ReturnType<Ledger['groups']>>[number]>

/** What the backend says about items and groups. It is asked only to read. */
export class StoredRecords {
  readonly #ledger: Ledger

  constructor(backend: Backend) {
    const found = ownedBy(backend, [])
    if (!('open' in found)) throw new Error(`this backend has no ledger: its ${found.foreign} is foreign`)
    this.#ledger = found.open({ prefix: 'work:' })
  }

  items(ids: readonly string[]): Promise<Map<string, ItemView>> {
    return inChunks(ids, (chunk) => this.#ledger.read(chunk))
  }

  groups(ids: readonly string[]): Promise<Map<string, StoredGroup>> {
    return inChunks(ids, (chunk) => this.#ledger.groups(chunk))
  }

  /** Whether all of them have ended: the last are asked first, since they end last. */
  async haveEnded(ids: readonly string[]): Promise<boolean> {
    for (const chunk of chunksOf(ids.toReversed())) {
      const views = await this.#ledger.read(chunk)
      if (!views.every(hasEnded)) return false
    }
    return true
  }
}

export function hasEnded(view: ItemView | undefined): boolean {
  return view?.status === 'completed' || view?.status === 'dead'
}

async function inChunks<T>(
  ids: readonly string[],
  read: (chunk: readonly string[]) => Promise<readonly (T | undefined)[]>,
): Promise<Map<string, T>> {
  const found = new Map<string, T>()
  for (const chunk of chunksOf(ids)) {
    const values = await read(chunk)
    for (const [i, id] of chunk.entries()) if (values[i] !== undefined) found.set(id, values[i])
  }
  return found
}

function chunksOf<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, i) => all.slice(i * CHUNK, (i + 1) * CHUNK))
}

import type { Ms } from '../../core/time/time.js'
import type { OpsContext } from '../context.js'
import type { ActionRecord } from './action-record.js'

/** How long an action is kept after its last update. */
const KEEP_MS: Ms = 30 * 86_400_000
const MOST_LISTED = 50

/**
 * Bulk actions, kept in the backend's key-value store, so no backend needs code for them. Each has a record under its id and a
 * numbered slot that holds the id. The slots replace a list, which two processes could overwrite for each other.
 */
export class ActionStore {
  readonly #context: OpsContext

  constructor(context: OpsContext) {
    this.#context = context
  }

  async save(record: ActionRecord): Promise<void> {
    await this.#store.set(this.#recordKey(record.id), JSON.stringify(record), KEEP_MS)
  }

  async load(id: string): Promise<ActionRecord | undefined> {
    const text = await this.#store.get(this.#recordKey(id))
    // Only this class writes these keys.
    return text === undefined ? undefined : (JSON.parse(text) as ActionRecord)
  }

  /** Stores a new action: the record first, then the slot that points at it. */
  async begin(record: ActionRecord): Promise<void> {
    await this.save(record)
    let slot = (await this.#lastSlot()) + 1
    while (!(await this.#store.setIfNotExists(this.#slotKey(slot), record.id, KEEP_MS))) slot += 1
    await this.#store.set(this.#key('actions:last'), String(slot))
  }

  /** The latest actions, newest first. */
  async recent(): Promise<readonly ActionRecord[]> {
    const last = await this.#lastSlot()
    const slots = Array.from({ length: Math.min(last, MOST_LISTED) }, (_, i) => this.#slotKey(last - i))
    const ids = (await this.#getAll(slots)).flatMap((id) => id ?? [])
    const texts = await this.#getAll(ids.map((id) => this.#recordKey(id)))
    return texts.flatMap((text) => (text === undefined ? [] : [JSON.parse(text) as ActionRecord]))
  }

  async #getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    if (keys.length === 0) return []
    const { getMany } = this.#store
    return getMany === undefined
      ? Promise.all(keys.map((key) => this.#store.get(key)))
      : getMany.call(this.#store, keys)
  }

  /** The stored number may lag behind when several actions begin together. */
  async #lastSlot(): Promise<number> {
    const noted = Number((await this.#store.get(this.#key('actions:last'))) ?? 0)
    let last = Number.isSafeInteger(noted) && noted >= 0 ? noted : 0
    while ((await this.#store.get(this.#slotKey(last + 1))) !== undefined) last += 1
    return last
  }

  get #store() {
    return this.#context.ports.store
  }

  #key(name: string): string {
    return `${this.#context.prefix}ops:${name}`
  }

  #recordKey(id: string): string {
    return this.#key(`action:${id}`)
  }

  #slotKey(slot: number): string {
    return this.#key(`actions:${slot}`)
  }
}

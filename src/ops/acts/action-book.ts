import type { Ms } from '../../core/time.js'
import type { Desk } from '../desk.js'
import type { ActionRecord } from './action-record.js'

/** How long an action is remembered after the last that was heard of it. */
const KEEP_MS: Ms = 30 * 86_400_000
const MOST_LISTED = 50

/**
 * Bulk actions, in the backend's own store: no backend has to know of them. Each has a record under its id, and a numbered slot that
 * names it, so that the last ones are found without a list that two processes could overwrite for each other.
 */
export class ActionBook {
  readonly #desk: Desk

  constructor(desk: Desk) {
    this.#desk = desk
  }

  async save(record: ActionRecord): Promise<void> {
    await this.#store.set(this.#recordKey(record.id), JSON.stringify(record), KEEP_MS)
  }

  async load(id: string): Promise<ActionRecord | undefined> {
    const text = await this.#store.get(this.#recordKey(id))
    // Nobody else writes under these keys.
    return text === undefined ? undefined : (JSON.parse(text) as ActionRecord)
  }

  /** Writes down a new one. Its record is there before anything points at it. */
  async begin(record: ActionRecord): Promise<void> {
    await this.save(record)
    let slot = (await this.#lastSlot()) + 1
    while (!(await this.#store.setIfNotExists(this.#slotKey(slot), record.id, KEEP_MS))) slot += 1
    await this.#store.set(this.#key('actions:last'), String(slot))
  }

  /** The last ones, the newest first. */
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

  /** What was noted last may be behind by those who began at the same time. */
  async #lastSlot(): Promise<number> {
    const noted = Number((await this.#store.get(this.#key('actions:last'))) ?? 0)
    let last = Number.isSafeInteger(noted) && noted >= 0 ? noted : 0
    while ((await this.#store.get(this.#slotKey(last + 1))) !== undefined) last += 1
    return last
  }

  get #store() {
    return this.#desk.ports.store
  }

  #key(name: string): string {
    return `${this.#desk.prefix}ops:${name}`
  }

  #recordKey(id: string): string {
    return this.#key(`action:${id}`)
  }

  #slotKey(slot: number): string {
    return this.#key(`actions:${slot}`)
  }
}

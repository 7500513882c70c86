import type { At, Ms } from '../../core/time.js'
import type { Desk } from '../desk.js'

/** What one commit of a bulk action was to change, and when it was about to. */
interface ChangedPage {
  readonly at: At
  readonly ids: readonly string[]
}

/** The pages of one action, and how many there are as far as its record tells. */
export interface PagesOf {
  readonly id: string
  readonly pages?: number
  /** When all of it had been changed. */
  readonly endedAt?: At
}

/** As long as the action itself is remembered. */
const KEEP_MS: Ms = 30 * 86_400_000
/** So many pages are looked through for one item: those of a hundred thousand items. */
const MOST_LOOKED_AT = 200
const AT_ONCE = 10

/**
 * Which items a bulk action has changed, in the order in which it came to them: an item can tell by whom it was changed, though
 * it has no line of its own in the log. A page is written before its commit, so that a process that dies in between leaves no
 * change without a name; what turns out to have moved on by itself is taken out again.
 */
export class ChangedPages {
  readonly #desk: Desk

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** Writes a page down behind those that are known; the number under which it stands. */
  async add({ id, pages = 0 }: PagesOf, page: ChangedPage): Promise<number> {
    const text = JSON.stringify(page)
    let slot = pages + 1
    // Who died before noting it, or goes on with the action at this moment, may have written one more.
    while (!(await this.#store.setIfNotExists(this.#key(id, slot), text, KEEP_MS))) slot += 1
    return slot
  }

  async replace(id: string, slot: number, page: ChangedPage): Promise<void> {
    await this.#store.set(this.#key(id, slot), JSON.stringify(page), KEEP_MS)
  }

  /** When the action was about to change that item, the last time between those two; undefined: it was not, as far as is known. */
  async lastChange(of: PagesOf, itemId: string, from: At, until: At): Promise<At | undefined> {
    if (of.endedAt !== undefined && of.endedAt < from) return undefined
    let slot = await this.#lastUntil(of, until)
    for (let looked = 0; slot > 0 && looked < MOST_LOOKED_AT; looked += AT_ONCE, slot -= AT_ONCE) {
      for (const page of await this.#load(of.id, slot, Math.min(AT_ONCE, slot))) {
        if (page === undefined || page.at < from) return undefined
        if (page.ids.includes(itemId)) return page.at
      }
    }
    return undefined
  }

  /** The number of the last page that was written until then; 0: none was. Times rise with numbers. */
  async #lastUntil({ id, pages = 0 }: PagesOf, until: At): Promise<number> {
    let [low, high] = [0, pages]
    while ((await this.#load(id, high + 1, 1))[0] !== undefined) high += 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      const [page] = await this.#load(id, middle, 1)
      // One that is no longer kept was before any that is.
      if (page === undefined || page.at <= until) low = middle
      else high = middle - 1
    }
    return low
  }

  /** That page and those before it, the last first. */
  async #load(id: string, slot: number, count: number): Promise<readonly (ChangedPage | undefined)[]> {
    const keys = Array.from({ length: count }, (_, i) => this.#key(id, slot - i))
    const { getMany } = this.#store
    const texts =
      getMany === undefined
        ? await Promise.all(keys.map((key) => this.#store.get(key)))
        : await getMany.call(this.#store, keys)
    // Nobody else writes under these keys.
    return texts.map((text) => (text === undefined ? undefined : (JSON.parse(text) as ChangedPage)))
  }

  get #store() {
    return this.#desk.ports.store
  }

  #key(id: string, slot: number): string {
    return `${this.#desk.prefix}ops:action:${id}:page:${slot}`
  }
}

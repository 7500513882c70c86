import type { At, Ms } from '../../core/time/time.js'
import type { OpsContext } from '../context.js'

/** The items that one commit of a bulk action was about to change, and when. */
interface ChangedPage {
  readonly at: At
  readonly ids: readonly string[]
}

/** An action, and how many pages its record counts. */
export interface PagesOf {
  readonly id: string
  readonly pages?: number
  /** When the last page was done. */
  readonly endedAt?: At
}

/** As long as the action itself is kept. */
const KEEP_MS: Ms = 30 * 86_400_000
/** How many pages are searched for one item: those of a hundred thousand items. */
const MOST_READ = 200
const PER_CALL = 10

/**
 * Which items a bulk action has changed, in order. With it, the timeline of an item can name the action, although the log has
 * no line for the item. A page is stored before its commit, so a process that dies in between leaves no change without a name;
 * items that turn out to have moved on are removed afterwards.
 */
export class ChangedPages {
  readonly #context: OpsContext

  constructor(context: OpsContext) {
    this.#context = context
  }

  /** Stores a page after the known ones and returns its number. */
  async add({ id, pages = 0 }: PagesOf, page: ChangedPage): Promise<number> {
    const text = JSON.stringify(page)
    let slot = pages + 1
    // A process that died before updating the record, or that continues the action now, may have stored one more.
    while (!(await this.#store.setIfNotExists(this.#key(id, slot), text, KEEP_MS))) slot += 1
    return slot
  }

  async replace(id: string, slot: number, page: ChangedPage): Promise<void> {
    await this.#store.set(this.#key(id, slot), JSON.stringify(page), KEEP_MS)
  }

  /** The last time between `from` and `until` at which the action was about to change that item, if any. */
  async lastChange(of: PagesOf, itemId: string, from: At, until: At): Promise<At | undefined> {
    if (of.endedAt !== undefined && of.endedAt < from) return undefined
    let slot = await this.#lastUntil(of, until)
    for (let read = 0; slot > 0 && read < MOST_READ; read += PER_CALL, slot -= PER_CALL) {
      for (const page of await this.#load(of.id, slot, Math.min(PER_CALL, slot))) {
        if (page === undefined || page.at < from) return undefined
        if (page.ids.includes(itemId)) return page.at
      }
    }
    return undefined
  }

  /** The number of the last page stored by `until`, or 0. Times rise with numbers. */
  async #lastUntil({ id, pages = 0 }: PagesOf, until: At): Promise<number> {
    let [low, high] = [0, pages]
    while ((await this.#load(id, high + 1, 1))[0] !== undefined) high += 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      const [page] = await this.#load(id, middle, 1)
      // A page that has expired is older than any that has not.
      if (page === undefined || page.at <= until) low = middle
      else high = middle - 1
    }
    return low
  }

  /** That page and the ones before it, newest first. */
  async #load(id: string, slot: number, count: number): Promise<readonly (ChangedPage | undefined)[]> {
    const keys = Array.from({ length: count }, (_, i) => this.#key(id, slot - i))
    const { getMany } = this.#store
    const texts =
      getMany === undefined
        ? await Promise.all(keys.map((key) => this.#store.get(key)))
        : await getMany.call(this.#store, keys)
    // Only this class writes these keys.
    return texts.map((text) => (text === undefined ? undefined : (JSON.parse(text) as ChangedPage)))
  }

  get #store() {
    return this.#context.ports.store
  }

  #key(id: string, slot: number): string {
    return `${this.#context.prefix}ops:action:${id}:page:${slot}`
  }
}

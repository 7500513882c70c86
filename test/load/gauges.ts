import { existsSync, readFileSync } from 'node:fs'
import { constants, type IntervalHistogram, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

const STALL_EVERY_MS = 5
const HEAP_EVERY_MS = 50
const MB = 2 ** 20
/** Of the main thread: nanoseconds on a core, nanoseconds ready and waiting for one, and how often. */
const SCHEDULED = '/proc/self/schedstat'

export interface Costs {
  /** The longest time that the event loop did not turn, without what the thread waited for a core that others had. */
  readonly stallMs: number
  /** The longest delay that `perf_hooks` saw, whatever caused it. */
  readonly delayMs: number
  /** Peak of the heap above what it was before, garbage included: how much of that there is depends on the collector. */
  readonly heapMb: number
  /** The most of it that was alive, as each full collection found it, and the one at the end. */
  readonly liveMb: number
  readonly rssMb: number
}

/** What a process costs while it works: how long its event loop stalled, and how much memory it took. */
export class Gauges {
  readonly #delays: IntervalHistogram = monitorEventLoopDelay({ resolution: STALL_EVERY_MS })
  #timers: NodeJS.Timeout[] = []
  readonly #collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      // The types of Node know `detail` of some kinds of entries only.
      const { detail } = entry as unknown as { readonly detail?: { readonly kind?: number } }
      if (detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR)
        this.#live = Math.max(this.#live, process.memoryUsage().heapUsed)
    }
  })
  #heapBefore = 0
  #heap = 0
  #live = 0
  #rss = 0
  #stallMs = 0
  #dueAt = 0
  #waitedMs = 0
  #sampledAt = 0

  async begin(): Promise<void> {
    // What was needed to prepare the load is not part of it.
    globalThis.gc?.()
    this.#heapBefore = process.memoryUsage().heapUsed
    this.#collections.observe({ entryTypes: ['gc'] })
    this.#delays.enable()
    // It counts from its second sample on: a load that stops the loop before would go unseen.
    await sleep(4 * STALL_EVERY_MS)
    // A separate probe: what a timer of the application would have felt.
    this.#dueAt = performance.now() + STALL_EVERY_MS
    this.#waitedMs = waitedMs()
    this.#timers = [setInterval(() => this.#turned(), STALL_EVERY_MS), setInterval(() => this.sample(), HEAP_EVERY_MS)]
  }

  async end(): Promise<Costs> {
    // A loop that has not turned until now shows that only when it turns.
    await sleep(2 * HEAP_EVERY_MS)
    for (const timer of this.#timers) clearInterval(timer)
    this.#delays.disable()
    this.#collections.disconnect()
    globalThis.gc?.()
    this.#live = Math.max(this.#live, process.memoryUsage().heapUsed)
    return {
      stallMs: Math.round(this.#stallMs),
      delayMs: Math.round(this.#delays.max / 1e6 - STALL_EVERY_MS),
      heapMb: Math.round((this.#heap - this.#heapBefore) / MB),
      liveMb: Math.round((this.#live - this.#heapBefore) / MB),
      rssMb: Math.round(this.#rss / MB),
    }
  }

  /** Called also by what happens while no timer can fire. */
  sample(): void {
    const now = performance.now()
    if (now - this.#sampledAt < HEAP_EVERY_MS / 2) return
    this.#sampledAt = now
    const { heapUsed, rss } = process.memoryUsage()
    this.#heap = Math.max(this.#heap, heapUsed)
    this.#rss = Math.max(this.#rss, rss)
  }

  #turned(): void {
    const [now, waited] = [performance.now(), waitedMs()]
    this.#stallMs = Math.max(this.#stallMs, now - this.#dueAt - (waited - this.#waitedMs))
    this.#dueAt = now + STALL_EVERY_MS
    this.#waitedMs = waited
  }
}

const isScheduleKnown = existsSync(SCHEDULED)

/** How long this thread has waited for a core so far. On a busy machine that is a stall, and none of ours. */
function waitedMs(): number {
  return isScheduleKnown ? Number(readFileSync(SCHEDULED, 'utf8').split(' ')[1]) / 1e6 : 0
}

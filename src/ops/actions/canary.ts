import { endingFingerprint } from '../../core/failure/fingerprint.js'
import type { Clock } from '../../core/time/clock.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { At, Ms } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { Attempt } from '../../ports/item.js'
import type { OpsContext } from '../context.js'
import { durationText } from '../duration-text.js'

/** An item sent ahead, as it was before. */
export interface CanaryItem {
  readonly id: string
  /** When it had died. */
  readonly endAt: At | undefined
  /** Its last run before it was sent. Later runs are new. */
  readonly last: string | undefined
}

/** What became of an item sent ahead. */
type CanaryOutcome =
  /** The process died before sending it. */
  | { readonly kind: 'unsent' }
  | { readonly kind: 'open' }
  | { readonly kind: 'fine' }
  | { readonly kind: 'failed'; readonly because: string }

/** How often items are polled for retries, which send no notification; the interval doubles. Ends do notify. */
const FIRST_POLL_MS: Ms = 250
const LONGEST_POLL_MS: Ms = 5_000

const runOf = ({ attempt, startedAt, endedAt, worker }: Attempt): string =>
  JSON.stringify([attempt, startedAt, endedAt, worker])

/** What an item died of: the fingerprint of its last run or, without one (it crashed or expired), a fingerprint of its ending. */
export function deathMark(view: ItemSummary, attempts: readonly Attempt[]): string {
  const { ending = 'dead', class: of = 'retryable', error = '', envelope } = view
  return attempts.at(-1)?.fingerprint ?? endingFingerprint({ ending, class: of, error, type: envelope.type })
}

export function canaryItem(view: ItemSummary, attempts: readonly Attempt[]): CanaryItem {
  const last = attempts.at(-1)
  return { id: view.envelope.id, endAt: view.endAt, last: last === undefined ? undefined : runOf(last) }
}

/**
 * The outcome of an item sent ahead. It has failed when one of its runs fails with a fingerprint that any of them had died of,
 * even if it is retried after that, or when it dies again for any reason. The text goes to the action and the log, where
 * `redact` is not applied, so it names the failure and does not quote it.
 */
function outcomeOf(
  ahead: CanaryItem,
  view: ItemSummary | undefined,
  attempts: readonly Attempt[],
  marks: ReadonlySet<string>,
): CanaryOutcome {
  const { id } = ahead
  if (view === undefined) return { kind: 'fine' }
  if (view.status === 'dead' && view.endAt === ahead.endAt) return { kind: 'unsent' }
  const since = attempts.slice(attempts.findLastIndex((attempt) => runOf(attempt) === ahead.last) + 1)
  for (const { fingerprint } of since) {
    if (fingerprint === undefined || !marks.has(fingerprint)) continue
    return { kind: 'failed', because: `${id} failed again with the same fingerprint ${fingerprint}` }
  }
  if (view.status === 'completed' || view.ending === 'cancelled') return { kind: 'fine' }
  if (view.status !== 'dead') return { kind: 'open' }
  const mark = deathMark(view, since)
  const how = `${view.ending ?? 'dead'}, fingerprint ${mark}`
  const again = marks.has(mark) ? `in the same way (${how})` : `of another cause (${how})`
  return { kind: 'failed', because: `${id} died again ${again}` }
}

/** The result of watching the items sent ahead. */
export type CanaryVerdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'failed'; readonly because: string }
  /** Some have not ended in time. */
  | { readonly kind: 'late'; readonly because: string }
  | { readonly kind: 'aborted' }

/** Waits until all items sent ahead have ended, one has failed again, or the time is up. */
export async function watchCanaries(
  context: OpsContext,
  inbox: string,
  {
    ahead,
    marks,
    waitMs,
  }: { readonly ahead: readonly CanaryItem[]; readonly marks: readonly string[]; readonly waitMs: Ms },
  signal: AbortSignal | undefined,
): Promise<CanaryVerdict> {
  const { ledger, clock } = context
  const inspect = context.inspect('redrive({ canary })')
  const known = new Set(marks)
  const untilMs = clock.monotonic() + waitMs
  const wakeup = new Wakeup(clock, signal)
  const off = ledger.onInbox(inbox, () => wakeup.wake())
  const letGo = keepAlive()
  try {
    let open = ahead
    await ledger.watch(inbox, { itemIds: open.map(({ id }) => id), groupIds: [] })
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * 2)) {
      const views = await context.summaries(open.map(({ id }) => id))
      const runs = await Promise.all(open.map(({ id }) => inspect.attempts(id)))
      const fates = open.map((one, i) => outcomeOf(one, views[i], runs[i]!, known))
      const failed = fates.find((fate) => fate.kind === 'failed')
      if (failed !== undefined) return failed
      open = open.filter((_, i) => fates[i]!.kind === 'open')
      if (open.length === 0) return { kind: 'fine' }
      const leftMs = untilMs - clock.monotonic()
      if (leftMs <= 0) return { kind: 'late', because: lateText(open, ahead.length, waitMs) }
      if (signal?.aborted === true) return { kind: 'aborted' }
      await wakeup.waitAtMost(Math.min(pollMs, leftMs))
    }
  } finally {
    off()
    letGo()
  }
}

function lateText(open: readonly CanaryItem[], all: number, waitMs: Ms): string {
  const names = open.slice(0, 3).map(({ id }) => id)
  return `${open.length} of the ${all} sent ahead had not ended after ${durationText(waitMs)} (${names.join(', ')}); explain says why`
}

/** A sleep that can be cut short. A wake before the sleep counts. */
class Wakeup {
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined
  #isAwake = false
  #over: AbortController | undefined

  constructor(clock: Clock, signal: AbortSignal | undefined) {
    this.#clock = clock
    this.#signal = signal
  }

  wake(): void {
    this.#isAwake = true
    this.#over?.abort()
  }

  async waitAtMost(ms: Ms): Promise<void> {
    if (!this.#isAwake) {
      this.#over = new AbortController()
      const { signal } = this.#over
      const either = this.#signal === undefined ? signal : AbortSignal.any([signal, this.#signal])
      try {
        await this.#clock.sleep(ms, either)
      } catch {
        // Woken or aborted: the caller checks which.
      }
      this.#over = undefined
    }
    this.#isAwake = false
  }
}

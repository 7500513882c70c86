import type { Clock } from '../../core/clock.js'
import { endingFingerprint } from '../../core/fingerprint.js'
import { keepAlive } from '../../core/keep-alive.js'
import type { At, Ms } from '../../core/time.js'
import type { Attempt } from '../../ports/item.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { Desk } from '../desk.js'
import { durationText } from '../duration-text.js'

/** One that was sent ahead, as it was before. */
export interface Ahead {
  readonly id: string
  /** When it had died. */
  readonly endAt: At | undefined
  /** Its last run before it was sent: what comes after that is news. */
  readonly last: string | undefined
}

/** What has become of one that was sent ahead. */
type Fate =
  /** Whoever was to send it died first. */
  | { readonly kind: 'unsent' }
  | { readonly kind: 'open' }
  | { readonly kind: 'fine' }
  | { readonly kind: 'failed'; readonly because: string }

/** How soon it is looked at for retries, which nobody is told of; longer each time. Ends are told. */
const FIRST_LOOK_MS: Ms = 250
const LONGEST_LOOK_MS: Ms = 5_000

const runOf = ({ attempt, startedAt, endedAt, worker }: Attempt): string =>
  JSON.stringify([attempt, startedAt, endedAt, worker])

/** What an item died of: its fingerprint; or, where no run left one (it crashed, it expired), one of how it ended. */
export function deathMark(view: ItemSummary, attempts: readonly Attempt[]): string {
  const { ending = 'dead', class: of = 'retryable', error = '', envelope } = view
  return attempts.at(-1)?.fingerprint ?? endingFingerprint({ ending, class: of, error, type: envelope.type })
}

export function aheadOf(view: ItemSummary, attempts: readonly Attempt[]): Ahead {
  const last = attempts.at(-1)
  return { id: view.envelope.id, endAt: view.endAt, last: last === undefined ? undefined : runOf(last) }
}

/**
 * How one that was sent ahead fares. It has failed when a run of it failed of what any of them had died of, also when it is
 * tried again after that; and when it died again, of whatever. What is said of it is stored, in the action and in the log,
 * where no `redact` is asked: it names the failure and does not quote it.
 */
function fateOf(
  ahead: Ahead,
  view: ItemSummary | undefined,
  attempts: readonly Attempt[],
  marks: ReadonlySet<string>,
): Fate {
  const { id } = ahead
  if (view === undefined) return { kind: 'fine' }
  if (view.status === 'dead' && view.endAt === ahead.endAt) return { kind: 'unsent' }
  const since = attempts.slice(attempts.findLastIndex((attempt) => runOf(attempt) === ahead.last) + 1)
  for (const { fingerprint } of since) {
    if (fingerprint === undefined || !marks.has(fingerprint)) continue
    return { kind: 'failed', because: `${id} failed again with the same fingerprint ${fingerprint}` }
  }
  if (view.status === 'success' || view.ending === 'cancelled') return { kind: 'fine' }
  if (view.status !== 'dead') return { kind: 'open' }
  const mark = deathMark(view, since)
  const how = `${view.ending ?? 'dead'}, fingerprint ${mark}`
  const again = marks.has(mark) ? `in the same way (${how})` : `of something else (${how})`
  return { kind: 'failed', because: `${id} died again ${again}` }
}

/** What watching those that were sent ahead has come to. */
export type Judgement =
  | { readonly kind: 'fine' }
  | { readonly kind: 'failed'; readonly because: string }
  /** Some have not ended. */
  | { readonly kind: 'late'; readonly because: string }
  | { readonly kind: 'aborted' }

/** Waits until all that were sent ahead have ended, or one has failed again, or time is up. */
export async function judge(
  desk: Desk,
  inbox: string,
  {
    ahead,
    marks,
    waitMs,
  }: { readonly ahead: readonly Ahead[]; readonly marks: readonly string[]; readonly waitMs: Ms },
  signal: AbortSignal | undefined,
): Promise<Judgement> {
  const { ledger, clock } = desk
  const inspect = desk.inspect('redrive({ canary })')
  const known = new Set(marks)
  const untilMs = clock.monotonic() + waitMs
  const bell = new Bell(clock, signal)
  const off = ledger.onInbox(inbox, () => bell.ring())
  const letGo = keepAlive()
  try {
    let open = ahead
    await ledger.watch(inbox, { ids: open.map(({ id }) => id), groups: [] })
    for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(LONGEST_LOOK_MS, lookMs * 2)) {
      const views = await desk.summaries(open.map(({ id }) => id))
      const runs = await Promise.all(open.map(({ id }) => inspect.attempts(id)))
      const fates = open.map((one, i) => fateOf(one, views[i], runs[i]!, known))
      const failed = fates.find((fate) => fate.kind === 'failed')
      if (failed !== undefined) return failed
      open = open.filter((_, i) => fates[i]!.kind === 'open')
      if (open.length === 0) return { kind: 'fine' }
      const leftMs = untilMs - clock.monotonic()
      if (leftMs <= 0) return { kind: 'late', because: lateText(open, ahead.length, waitMs) }
      if (signal?.aborted === true) return { kind: 'aborted' }
      await bell.heardWithin(Math.min(lookMs, leftMs))
    }
  } finally {
    off()
    letGo()
  }
}

function lateText(open: readonly Ahead[], all: number, waitMs: Ms): string {
  const names = open.slice(0, 3).map(({ id }) => id)
  return `${open.length} of the ${all} sent ahead had not ended after ${durationText(waitMs)} (${names.join(', ')}); explain tells why`
}

/** Waits for a ring, for a while. A ring while nobody waits is not forgotten. */
class Bell {
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined
  #hasRung = false
  #over: AbortController | undefined

  constructor(clock: Clock, signal: AbortSignal | undefined) {
    this.#clock = clock
    this.#signal = signal
  }

  ring(): void {
    this.#hasRung = true
    this.#over?.abort()
  }

  async heardWithin(ms: Ms): Promise<void> {
    if (!this.#hasRung) {
      this.#over = new AbortController()
      const { signal } = this.#over
      const either = this.#signal === undefined ? signal : AbortSignal.any([signal, this.#signal])
      try {
        await this.#clock.sleep(ms, either)
      } catch {
        // Heard, or told to stop: whoever waited looks.
      }
      this.#over = undefined
    }
    this.#hasRung = false
  }
}

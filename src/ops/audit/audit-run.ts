import { newId } from '../../core/ids.js'
import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import type { AuditReport, Finding } from '../api.js'
import type { Desk } from '../desk.js'
import { type Gated, gatesOf } from './gates.js'
import { Groups } from './groups.js'
import { Homes } from './homes.js'
import { lapsedIn, neverTakenBack } from './leases.js'
import { pagesOf } from './pages.js'
import { forgottenByPauses } from './pauses.js'
import { straysIn } from './strays.js'
import { stuckOf, suspectsAmong } from './stuck.js'
import { type Found, UNFINISHED } from './suspicion.js'
import { counted, type Unseen } from './unseen.js'

export interface AuditHow {
  readonly repair: { readonly who: string; readonly why: string } | undefined
  readonly onProgress: ((report: AuditReport) => void) | undefined
  readonly signal: AbortSignal | undefined
  readonly isThorough: boolean
}

const ENDED = ['dead', 'completed', 'cancelled'] as const
/** Of those that have ended, the last so many tell of groups that stayed open. */
const ENDED_LOOKED_AT = 2_000
/** So many findings are listed; the rest is counted, and mended. */
const MOST_LISTED = 1_000
/** So many repairs have a line of their own in the log; the last line counts them all. */
const MOST_LOGGED = 100
const MOST_SUSPECTS = 1_000
/** Longer than an audit takes from its last look at a group to its repair. */
const TURN_MS = 60_000

/**
 * Since when an item could have run. Put back by a worker that does not know its type, it is due later than it was to start.
 */
function readySince({ status, hold, dueAt, envelope }: ItemSummary): At | undefined {
  return status !== 'pending' || hold !== undefined || dueAt === undefined
    ? undefined
    : Math.min(dueAt, envelope.startAt)
}

/** One audit: walks everything that has not ended, page by page, and mends what it is told to mend. */
export class AuditRun {
  readonly #desk: Desk
  readonly #how: AuditHow
  readonly #groups: Groups
  readonly #homes = new Homes()
  readonly #findings: Finding[] = []
  #suspects: Gated[] = []
  #checked = 0
  #found = 0
  #repaired = 0
  #endedSeen = 0
  #beyond = 0
  #unseen: readonly Unseen[] = []

  constructor(desk: Desk, how: AuditHow) {
    this.#desk = desk
    this.#how = how
    this.#groups = new Groups(desk, this.#isStopped)
  }

  async toItsEnd(): Promise<AuditReport> {
    const isComplete = await this.#walk()
    const { repair } = this.#how
    if (repair !== undefined && this.#repaired > 0) {
      const what = `audit: ${this.#repaired} of ${this.#found} findings repaired, ${this.#checked} items checked`
      await this.#desk.ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'log', ...repair, what }] }])
    }
    return { ...this.#report(), isComplete }
  }

  readonly #isStopped = (): boolean => this.#how.signal?.aborted === true

  /** False: it was told to stop before it had seen everything. */
  async #walk(): Promise<boolean> {
    const isStopped = this.#isStopped
    for await (const found of straysIn(this.#desk)) {
      await this.#note(found)
      if (isStopped()) return false
    }
    for (const state of UNFINISHED) {
      for await (const views of pagesOf(this.#desk.inspect('audit'), { state })) {
        await this.#page(views)
        this.#checked += views.length
        this.#how.onProgress?.(this.#report())
        if (isStopped()) return false
      }
    }
    for (const state of ENDED) {
      const most = this.#how.isThorough ? Number.POSITIVE_INFINITY : ENDED_LOOKED_AT
      for await (const views of pagesOf(this.#desk.inspect('audit'), { state }, most)) {
        await this.#groups.addEnded(views)
        this.#endedSeen += views.length
        if (isStopped()) return false
      }
    }
    await this.#judgeSuspects()
    for await (const found of this.#groups.wrong()) {
      await this.#note([found])
      if (isStopped()) return false
    }
    await this.#note(await this.#homes.unserved(this.#desk))
    await this.#noteUnseen()
    return !isStopped()
  }

  async #noteUnseen(): Promise<void> {
    let ended = 0
    if (!this.#how.isThorough) {
      for (const { counts } of await this.#desk.inspect('audit').counts())
        for (const state of ENDED) ended += counts[state] ?? 0
    }
    this.#unseen = [
      ...this.#groups.unseen(),
      ...counted('waits', this.#beyond, (n) =>
        n === 1
          ? 'The wait of 1 held item reaches over more items than are looked at in one go: it was taken to be able to end.'
          : `The waits of ${n} held items reach over more items than are looked at in one go: they were taken to be able to end.`,
      ),
      ...counted(
        'ended',
        Math.max(0, ended - this.#endedSeen),
        (n) =>
          `${n === 1 ? '1 item that ended' : `${n} items that ended`} longer ago: whether a group of theirs never closed is looked for only in a thorough audit.`,
      ),
    ]
  }

  async #page(views: readonly ItemSummary[]): Promise<void> {
    const desk = this.#desk
    const [{ found, waiting }, aside, now] = await Promise.all([
      gatesOf(desk, views),
      forgottenByPauses(desk, views),
      desk.now(),
      this.#groups.add(views),
    ])
    await this.#note([...found, ...aside])
    this.#suspects.push(...(await suspectsAmong(desk, waiting)))
    if (this.#suspects.length >= MOST_SUSPECTS) await this.#judgeSuspects()
    for (const view of views) {
      const since = readySince(view)
      if (since !== undefined && since <= now) this.#homes.add(view, since)
    }
    const lapsed = lapsedIn(views, now)
    if (lapsed.length === 0) return
    for (const view of lapsed) this.#homes.add(view, view.leaseUntil!)
    await this.#note(await neverTakenBack(desk, lapsed, await desk.inspect('audit').workers()))
  }

  async #judgeSuspects(): Promise<void> {
    const suspects = this.#suspects
    this.#suspects = []
    const { found, beyond } = await stuckOf(this.#desk, suspects)
    this.#beyond += beyond
    await this.#note(found)
  }

  /** Takes findings down, and mends them, all of a page in one commit. */
  async #note(found: readonly Found[]): Promise<void> {
    if (found.length === 0) return
    const isRepaired = this.#how.repair === undefined ? found.map(() => false) : await this.#mend(found)
    for (const [i, { code, id, text, repair, mend }] of found.entries()) {
      this.#found += 1
      if (isRepaired[i] === true) this.#repaired += 1
      if (this.#findings.length >= MOST_LISTED) continue
      const canRepair = mend !== undefined
      this.#findings.push({ code, id, text, repair, canRepair, isRepaired: isRepaired[i] === true })
    }
  }

  async #mend(found: readonly Found[]): Promise<readonly boolean[]> {
    const { ledger } = this.#desk
    const isMended = found.map(() => false)
    const batch: { readonly i: number; readonly settlement: Settlement }[] = []
    for (const [i, one] of found.entries()) {
      if (one.turn !== undefined && !(await this.#hasTurn(one.turn))) continue
      if (one.mend?.by === 'settlement') batch.push({ i, settlement: this.#logged(one, one.mend.settlement) })
      if (one.mend?.by === 'reclaim') {
        await ledger.claim({
          from: [{ queue: one.mend.queue, max: 0 }],
          leaseMs: 1_000,
          worker: `ops:${newId()}`,
        })
        const [view] = await this.#desk.summaries([one.id])
        if (view?.status === 'running') continue
        isMended[i] = true
        await ledger.commit([this.#logged(one, { guard: { by: 'none' }, effects: [] })])
      }
    }
    if (batch.length === 0) return isMended
    const results = await ledger.commit(batch.map(({ settlement }) => settlement))
    for (const [n, { i }] of batch.entries()) isMended[i] = results[n]?.kind === 'applied'
    return isMended
  }

  /** Two who correct the same count at once would correct it twice. Who died with their turn had it for a minute. */
  #hasTurn(name: string): Promise<boolean> {
    const { ports, prefix } = this.#desk
    return Promise.resolve(ports.store.setIfNotExists(`${prefix}ops:mends:${name}`, '1', TURN_MS))
  }

  /** The line is written in the step that mends; a log of a hundred thousand lines helps nobody. */
  #logged({ code, id }: Found, { guard, effects }: Settlement): Settlement {
    const { repair } = this.#how
    if (repair === undefined || this.#repaired >= MOST_LOGGED) return { guard, effects }
    const line: Effect = { do: 'log', ...repair, what: `audit repaired ${code} of ${id}` }
    return { guard, effects: [...effects, line] }
  }

  #report(): AuditReport {
    return {
      checked: this.#checked,
      found: this.#found,
      repaired: this.#repaired,
      findings: [...this.#findings],
      isComplete: false,
      unseen: this.#unseen,
    }
  }
}

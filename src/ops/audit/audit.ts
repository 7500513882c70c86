import { newId } from '../../core/ids.js'
import { flag, listener, optional, readOptions, signal } from '../../core/read-options.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import type { Effect, Settlement } from '../../ports/settlement.js'
import { readActor } from '../actions/selection.js'
import type { Actor, AuditOptions, AuditReport, Finding, Ops } from '../api.js'
import type { OpsContext } from '../context.js'
import { counted, type Found, type Skipped, UNFINISHED } from './found.js'
import { type Gated, gatesOf } from './gates.js'
import { Groups } from './groups.js'
import { lapsedLeases, notReclaimed } from './leases.js'
import { pagesOf } from './pages.js'
import { heldAfterResume } from './pauses.js'
import { QueueTypes } from './queue-types.js'
import { stuckOf, suspectsAmong } from './stuck-gates.js'
import { stuckItemsIn } from './stuck-items.js'

/** Checks that every unfinished item can finish, and reports those that cannot. */
export function openAudit(context: OpsContext): Pick<Ops, 'audit'> {
  return {
    async audit(options) {
      const how = readAuditOptions(options)
      context.inspect('audit')
      const letGo = keepAlive()
      try {
        return await new AuditRun(context, how).run()
      } finally {
        letGo()
      }
    },
  }
}

const readAuditOptions = (options: AuditOptions | undefined) =>
  readOptions('audit', options, {
    repair: optional((path: string, repair: unknown) => readActor(path, repair as Actor)),
    thorough: flag(false),
    onProgress: listener,
    signal,
  })

type AuditSettings = ReturnType<typeof readAuditOptions>

const ENDED = ['dead', 'completed', 'cancelled'] as const
/** How many of the last ended items are checked for groups that stayed open. */
const ENDED_CHECKED = 2_000
/** How many findings are listed; the rest is counted and repaired. */
const MOST_LISTED = 1_000
/** How many repairs get their own log line; the last line counts them all. */
const MOST_LOGGED = 100
const MOST_SUSPECTS = 1_000
/** Longer than an audit takes from its last read of a group to the repair. */
const LOCK_MS = 60_000

/**
 * Since when an item could have run. A worker that does not know its type puts it back with a later due time.
 */
function readySince({ status, hold, dueAt, envelope }: ItemSummary): At | undefined {
  return status !== 'pending' || hold !== undefined || dueAt === undefined
    ? undefined
    : Math.min(dueAt, envelope.startAt)
}

/** One audit: reads all unfinished items page by page, and repairs what it finds if asked to. */
class AuditRun {
  readonly #context: OpsContext
  readonly #how: AuditSettings
  readonly #groups: Groups
  readonly #queueTypes = new QueueTypes()
  readonly #findings: Finding[] = []
  #suspects: Gated[] = []
  #checked = 0
  #found = 0
  #repaired = 0
  #endedSeen = 0
  #beyond = 0
  #skipped: readonly Skipped[] = []

  constructor(context: OpsContext, how: AuditSettings) {
    this.#context = context
    this.#how = how
    this.#groups = new Groups(context, this.#isStopped)
  }

  async run(): Promise<AuditReport> {
    const isComplete = await this.#walk()
    const { repair } = this.#how
    if (repair !== undefined && this.#repaired > 0) {
      const what = `audit: ${this.#repaired} of ${this.#found} findings repaired, ${this.#checked} items checked`
      await this.#context.ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'log', ...repair, what }] }])
    }
    return { ...this.#report(), isComplete }
  }

  readonly #isStopped = (): boolean => this.#how.signal?.aborted === true

  /** False: it was stopped before it had checked everything. */
  async #walk(): Promise<boolean> {
    const isStopped = this.#isStopped
    for await (const found of stuckItemsIn(this.#context)) {
      await this.#note(found)
      if (isStopped()) return false
    }
    for (const state of UNFINISHED) {
      for await (const views of pagesOf(this.#context.inspect('audit'), { state })) {
        await this.#page(views)
        this.#checked += views.length
        this.#how.onProgress?.(this.#report())
        if (isStopped()) return false
      }
    }
    for (const state of ENDED) {
      const most = this.#how.thorough ? Number.POSITIVE_INFINITY : ENDED_CHECKED
      for await (const views of pagesOf(this.#context.inspect('audit'), { state }, most)) {
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
    await this.#note(await this.#queueTypes.unserved(this.#context))
    await this.#noteSkipped()
    return !isStopped()
  }

  async #noteSkipped(): Promise<void> {
    let ended = 0
    if (!this.#how.thorough) {
      for (const { counts } of await this.#context.inspect('audit').counts())
        for (const state of ENDED) ended += counts[state] ?? 0
    }
    this.#skipped = [
      ...this.#groups.skipped(),
      ...counted('deep-gates', this.#beyond, (n) =>
        n === 1
          ? '1 held item waits behind more items than one audit follows: it is assumed to be able to end.'
          : `${n} held items wait behind more items than one audit follows: they are assumed to be able to end.`,
      ),
      ...counted(
        'ended',
        Math.max(0, ended - this.#endedSeen),
        (n) =>
          `${n === 1 ? '1 item' : `${n} items`} that ended longer ago: only a thorough audit checks whether their groups have closed.`,
      ),
    ]
  }

  async #page(views: readonly ItemSummary[]): Promise<void> {
    const context = this.#context
    const [{ found, waiting }, held, now] = await Promise.all([
      gatesOf(context, views),
      heldAfterResume(context, views),
      context.now(),
      this.#groups.add(views),
    ])
    await this.#note([...found, ...held])
    this.#suspects.push(...(await suspectsAmong(context, waiting)))
    if (this.#suspects.length >= MOST_SUSPECTS) await this.#judgeSuspects()
    for (const view of views) {
      const since = readySince(view)
      if (since !== undefined && since <= now) this.#queueTypes.add(view, since)
    }
    const lapsed = lapsedLeases(views, now)
    if (lapsed.length === 0) return
    for (const view of lapsed) this.#queueTypes.add(view, view.leaseUntil!)
    await this.#note(await notReclaimed(context, lapsed, await context.inspect('audit').workers()))
  }

  async #judgeSuspects(): Promise<void> {
    const suspects = this.#suspects
    this.#suspects = []
    const { found, beyond } = await stuckOf(this.#context, suspects)
    this.#beyond += beyond
    await this.#note(found)
  }

  /** Records findings, and repairs those of a page in one commit. */
  async #note(found: readonly Found[]): Promise<void> {
    if (found.length === 0) return
    const isRepaired = this.#how.repair === undefined ? found.map(() => false) : await this.#repair(found)
    for (const [i, { code, id, text, repair, fix }] of found.entries()) {
      this.#found += 1
      if (isRepaired[i] === true) this.#repaired += 1
      if (this.#findings.length >= MOST_LISTED) continue
      const canRepair = fix !== undefined
      this.#findings.push({ code, id, text, repair, canRepair, isRepaired: isRepaired[i] === true })
    }
  }

  async #repair(found: readonly Found[]): Promise<readonly boolean[]> {
    const { ledger } = this.#context
    const isFixed = found.map(() => false)
    const batch: { readonly i: number; readonly settlement: Settlement }[] = []
    for (const [i, one] of found.entries()) {
      if (one.lock !== undefined && !(await this.#hasLock(one.lock))) continue
      if (one.fix?.by === 'settlement') batch.push({ i, settlement: this.#logged(one, one.fix.settlement) })
      if (one.fix?.by === 'reclaim') {
        await ledger.claim({
          queues: [{ queue: one.fix.queue, max: 0 }],
          leaseMs: 1_000,
          worker: `ops:${newId()}`,
        })
        const [view] = await this.#context.summaries([one.id])
        if (view?.status === 'running') continue
        isFixed[i] = true
        await ledger.commit([this.#logged(one, { guard: { by: 'none' }, effects: [] })])
      }
    }
    if (batch.length === 0) return isFixed
    const results = await ledger.commit(batch.map(({ settlement }) => settlement))
    for (const [n, { i }] of batch.entries()) isFixed[i] = results[n]?.kind === 'applied'
    return isFixed
  }

  /** Two audits that correct the same count together would correct it twice. The lock of a dead process lasts a minute. */
  #hasLock(name: string): Promise<boolean> {
    const { ports, prefix } = this.#context
    return Promise.resolve(ports.store.setIfNotExists(`${prefix}ops:repairs:${name}`, '1', LOCK_MS))
  }

  /** Adds a log line to the repairing commit, up to a limit. */
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
      skipped: this.#skipped,
    }
  }
}

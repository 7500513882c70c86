import type { Clock } from '../../core/time/clock.js'
import type { ClerkApi } from '../clerk/api.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import { spiderStatusOf } from '../spider/dispatch/writ-status.js'
import type { ReadOnlyBook, StacksApi } from '../stacks/api.js'
import type { ChangeEvent } from '../stacks/watch/events.js'
import type { RetryDescription } from './api.js'
import { type DeadRetry, deadRetryOf, describeRetry, isRetryableWrit } from './describe.js'
import type { ResolvedRigRetry } from './policy.js'

/** What is read of a rig. */
interface RigView {
  readonly id: string
  readonly writId: string
  readonly status: string
  readonly attempt?: number
}

/** What is read of an event that could not be handled. */
interface DeadView extends DeadRetry {
  readonly watcher: string
}

/** How many writs the sweep reads in one query. */
const PAGE = 100

export interface RetryObserverOptions {
  readonly stacks: StacksApi
  readonly clerk: ClerkApi
  readonly notify: (decision: RetryDescription) => void
  readonly clock: Pick<Clock, 'now'>
  readonly policyOf: (type: string) => ResolvedRigRetry
}

/** Watches writs become stuck, and opens those again that carry the flag and have attempts left. */
export class RetryObserver {
  readonly #stacks: StacksApi
  readonly #clerk: ClerkApi
  readonly #notify: (decision: RetryDescription) => void
  readonly #clock: Pick<Clock, 'now'>
  readonly #policyOf: (type: string) => ResolvedRigRetry
  readonly #writs: ReadOnlyBook<WritDoc>
  readonly #rigs: ReadOnlyBook<RigView>
  readonly #deadEvents: ReadOnlyBook<DeadView>

  constructor({ stacks, clerk, notify, clock, policyOf }: RetryObserverOptions) {
    this.#stacks = stacks
    this.#clerk = clerk
    this.#notify = notify
    this.#clock = clock
    this.#policyOf = policyOf
    this.#writs = stacks.readBook('clerk', 'writs')
    this.#rigs = stacks.readBook('spider', 'rigs')
    this.#deadEvents = stacks.readBook('stacks', 'dead-events')
  }

  /** One change of a writ. It ignores everything but an entry into `stuck` with the flag. */
  async observe(event: ChangeEvent<WritDoc>): Promise<void> {
    if (event.type !== 'update') return
    const { entry, prev } = event
    if (entry.phase !== 'stuck' || prev.phase === 'stuck' || !isRetryableWrit(entry)) return
    await this.#decide(entry.id, rigIdOf(entry))
  }

  /**
   * Writs that became stuck before this version, or in a process that died and left no event. It does not touch writs that are at the
   * cap, nor those that a person stuck after a requeue: there the flag is gone, or speaks of another rig.
   */
  async sweep(warn: (writId: string, error: unknown) => void): Promise<void> {
    for (let last = ''; ; ) {
      const where = [
        ['phase', '=', 'stuck'],
        ['status.spider.retryable', '=', true],
        ['id', '>', last],
      ] as const
      const writs = await this.#writs.find({ where: [...where], orderBy: ['id', 'asc'], limit: PAGE })
      // Two questions for a page, not a transaction for each: writs at the cap stay stuck until a person comes, and every start of
      // every process meets all of them.
      const rigs = await this.#rigsOf(writs)
      for (const writ of writs) {
        try {
          if (isLeftOver(writ, rigs.get(writ.id) ?? [], this.#policyOf(writ.type).maxRigs))
            await this.#decide(writ.id, rigIdOf(writ))
        } catch (error) {
          warn(writ.id, error)
        }
      }
      if (writs.length < PAGE) return
      last = writs.at(-1)?.id ?? last
    }
  }

  async describe(writId: string): Promise<RetryDescription> {
    const writ = await this.#clerk.show(writId)
    const [dead] = await this.#deadEvents.find({ where: deadRetryOf(writ), limit: 1 })
    return this.#describe(writ, dead)
  }

  /** Reads again, decides and acts in one transaction: of two processes that handle one event, one requeues. */
  async #decide(writId: string, rigId: string | undefined): Promise<void> {
    const decision = await this.#stacks.transaction(async () => {
      const writ = await this.#writs.get(writId)
      if (writ?.phase !== 'stuck' || !isRetryableWrit(writ) || rigIdOf(writ) !== rigId) return undefined
      const described = await this.#describe(writ)
      if (described.decision === 'requeue') {
        const { delayMs } = described
        const runAt = delayMs === undefined ? undefined : new Date(this.#clock.now() + delayMs).toISOString()
        // A person may have put it off for longer.
        const isLater = runAt !== undefined && (writ.runAt === undefined || runAt > writ.runAt)
        await this.#clerk.transition(writId, 'open', isLater ? { runAt } : {})
      }
      return described
    })
    if (decision !== undefined) this.#notify(decision)
  }

  /** The rigs of these writs, the newest first. */
  async #rigsOf(writs: readonly WritDoc[]): Promise<Map<string, RigView[]>> {
    const rigs = new Map<string, RigView[]>()
    if (writs.length === 0) return rigs
    const where = [['writId', 'IN', writs.map(({ id }) => id)]] as const
    for (const rig of await this.#rigs.find({ where: [...where], orderBy: ['attempt', 'desc'] }))
      rigs.set(rig.writId, [...(rigs.get(rig.writId) ?? []), rig])
    return rigs
  }

  async #describe(writ: WritDoc, dead?: DeadRetry): Promise<RetryDescription> {
    return describeRetry(writ, await this.#attempts(writ.id), { policy: this.#policyOf(writ.type), dead })
  }

  /** The number of rigs is the number of attempts; there is no counter that could be wrong. */
  #attempts(writId: string): Promise<number> {
    return this.#rigs.count([['writId', '=', writId]])
  }
}

/** Whether it is stuck by its newest rig and may have another one. */
function isLeftOver(writ: WritDoc, rigs: readonly RigView[], cap: number): boolean {
  const [newest] = rigs
  if (newest === undefined) return true
  const rigId = rigIdOf(writ)
  const isOfNewest = newest.status === 'stuck' && (rigId === undefined || rigId === newest.id)
  return isOfNewest && rigs.length < cap
}

function rigIdOf(writ: WritDoc): string | undefined {
  return spiderStatusOf(writ).rigId
}

import type { At } from '../../src/core/time/time.js'
import type { Lease } from '../../src/ports/item.js'
import type { Notification, WorkerRecord } from '../../src/ports/ledger.js'
import type { Gate } from './gate.js'
import { type Group, newGroup } from './group.js'
import type { Row } from './row.js'

/** What was made known, beside the answers. */
export interface Signals {
  readonly ready: { readonly queue: string; readonly dueAt: At }[]
  readonly inboxes: { readonly to: string; readonly what: Notification }[]
}

/** Everything the model holds: plain maps that are walked over from end to end. */
export class Book {
  readonly now: () => At
  readonly maxItemBytes: number
  readonly rows = new Map<string, Row>()
  readonly groups = new Map<string, Group>()
  readonly gates = new Map<string, Gate>()
  /** `queue default`, `type mail`. */
  readonly paused = new Set<string>()
  readonly schedules = new Map<string, { readonly spec: string; readonly nextAt: At }>()
  readonly workers = new Map<string, WorkerRecord & { readonly seenAt: At }>()
  readonly log: { readonly who: string; readonly why: string; readonly what: string; readonly at: At }[] = []
  signals: Signals = { ready: [], inboxes: [] }
  arrivals = 0
  tokens = 0
  /** Ended items that are gone, and that no claim has told of. */
  removed = 0

  constructor(now: () => At, maxItemBytes: number) {
    this.now = now
    this.maxItemBytes = maxItemBytes
  }

  /** Forgets what has been kept long enough, and ends holds whose time is up: with them what their gates could have said. */
  tidy(): void {
    const now = this.now()
    for (const [id, row] of this.rows)
      if (row.goneAt <= now) {
        this.rows.delete(id)
        this.removed += 1
      } else if (row.status === 'pending' && row.dueAt <= now) row.hold = undefined
    for (const [id, group] of this.groups) if (group.goneAt <= now) this.groups.delete(id)
  }

  /** The group, made if it is not there. */
  group(id: string): Group {
    const found = this.groups.get(id) ?? newGroup()
    this.groups.set(id, found)
    return found
  }

  /** The row whose current lease this is. A lease that has lapsed is current until a claim frees it. */
  heldBy(lease: Lease): Row | undefined {
    const row = this.rows.get(lease.id)
    return row?.lease?.token === lease.token ? row : undefined
  }

  isPaused(row: Row): boolean {
    return this.paused.has(`queue ${row.queue}`) || this.paused.has(`type ${row.envelope.type}`)
  }

  /** Wakes the workers of this row's queue. */
  wake(row: Row): void {
    if (row.dueAt !== Infinity) this.signals.ready.push({ queue: row.queue, dueAt: row.dueAt })
  }

  tell(to: string, what: Partial<Notification>): void {
    this.signals.inboxes.push({ to, what: { itemIds: [], groupIds: [], ...what } })
  }
}

import type { Actions } from '../../../src/ops/actions/open-actions.js'
import type { FindingCode } from '../../../src/ops/api.js'
import type { OpsContext } from '../../../src/ops/context.js'
import type { Envelope, Hold } from '../../../src/ports/item.js'
import type { Effect, Settlement } from '../../../src/ports/settlement.js'

/** Where something is broken. */
export interface Site {
  readonly context: OpsContext
  readonly actions: Actions
  /** A type that a worker of the default queue knows. */
  readonly type: string
  now(): number
  /** Tells the backend of a worker that is alive, and does nothing. */
  pretend(worker: { readonly queues: readonly string[]; readonly types: readonly string[] }): Promise<void>
}

/** One way in which a system can be broken, made with the words of the ledger alone, so that every backend can have it. */
export interface Corruption {
  readonly name: string
  readonly code: FindingCode
  /** Breaks it. Returns the item that the finding is about, and all items that must end once it is repaired. */
  readonly seed: (site: Site, name: string) => Promise<{ readonly about: string; readonly mustEnd: readonly string[] }>
  /** Whether any claim repairs it. */
  readonly impossibleOn?: readonly string[]
  /** What the finding tells a person to do, where the audit does not do it. */
  readonly remedy?: (site: Site, about: string) => Promise<void>
}

export const envelope = (id: string, { type, now }: Site, more: Partial<Envelope> = {}): Envelope => ({
  v: 1,
  id,
  type,
  groupId: id,
  input: '"x"',
  queueAt: now(),
  startAt: now(),
  attempt: 1,
  priority: 0,
  ...more,
})

interface Born {
  readonly hold?: Hold
  readonly delayMs?: number
  readonly queue?: string
  readonly also?: readonly Effect[]
}

export const born = (item: Envelope, { hold, delayMs = 0, queue = 'default', also = [] }: Born = {}): Settlement => ({
  guard: { by: 'absent', id: item.id },
  effects: [
    { do: 'joinGroup', groupId: item.groupId, count: 1 },
    ...also,
    { do: 'enqueue', item, queue, delayMs, ...(hold === undefined ? {} : { hold }) },
  ],
})

const gateOver = (key: string, holds: string, members: readonly string[]): Effect => ({
  do: 'openGate',
  key,
  heldId: holds,
  members,
  need: members.length,
  of: 'success',
})

export async function commit({ context }: Site, batch: readonly Settlement[]): Promise<void> {
  for (const result of await context.ledger.commit(batch)) {
    if (result.kind !== 'applied') throw new Error(`the corruption was ${result.kind}`)
  }
}

const FOREVER = Number.POSITIVE_INFINITY

export const CORRUPTIONS: readonly Corruption[] = [
  {
    name: 'an item that is never due, and that nothing holds',
    code: 'stuck-item',
    async seed(site, id) {
      await commit(site, [born(envelope(id, site), { delayMs: FOREVER })])
      return { about: id, mustEnd: [id] }
    },
  },
  {
    name: 'an item held by a gate that does not exist',
    code: 'gate-missing',
    async seed(site, id) {
      const hold = { by: 'gate', key: `gate of ${id}` } as const
      await commit(site, [born(envelope(id, site), { hold, delayMs: FOREVER })])
      return { about: id, mustEnd: [id] }
    },
  },
  {
    name: 'a gate that was not told of the end of a tree',
    code: 'gate-missed',
    async seed(site, id) {
      // The top of the tree knows nothing of the gate, and will not tell it.
      const top = `${id}-top`
      const hold = { by: 'gate', key: `gate of ${id}` } as const
      await commit(site, [
        born(envelope(top, site)),
        born(envelope(id, site), {
          hold,
          delayMs: FOREVER,
          also: [gateOver(hold.key, id, [`${top}/tree`])],
        }),
      ])
      return { about: id, mustEnd: [top, id] }
    },
  },
  {
    name: 'a gate over something that nobody has enqueued',
    code: 'gate-unknown',
    async seed(site, id) {
      const hold = { by: 'gate', key: `gate of ${id}` } as const
      const also = [gateOver(hold.key, id, [`${id}-nobody`])]
      await commit(site, [born(envelope(id, site), { hold, delayMs: FOREVER, also })])
      return { about: id, mustEnd: [id, `${id}-nobody`] }
    },
    async remedy(site, id) {
      await commit(site, [born(envelope(`${id}-nobody`, site))])
    },
  },
  {
    name: 'gates that wait for each other',
    code: 'gate-cycle',
    async seed(site, id) {
      const ids = [`${id}-a`, `${id}-b`, `${id}-c`] as const
      await commit(
        site,
        ids.map((one, i) => {
          const hold = { by: 'gate', key: `gate of ${one}` } as const
          return born(envelope(one, site), {
            hold,
            delayMs: FOREVER,
            also: [gateOver(hold.key, one, [ids[(i + 1) % 3]!])],
          })
        }),
      )
      return { about: ids[0], mustEnd: ids }
    },
    async remedy({ actions }, id) {
      await actions.cancel(id, { who: 'ann' })
    },
  },
  {
    name: 'an item that is held for a pause that is over',
    code: 'pause-over',
    impossibleOn: ['Redis'],
    async seed(site, id) {
      const hold = { by: 'pause', key: `type:${site.type}` } as const
      await commit(site, [born(envelope(id, site), { hold, delayMs: FOREVER })])
      return { about: id, mustEnd: [id] }
    },
  },
  {
    name: 'a group that counts one too many',
    code: 'group-count',
    async seed(site, id) {
      await commit(site, [
        born(envelope(id, site)),
        { guard: { by: 'none' }, effects: [{ do: 'joinGroup', groupId: id, count: 1 }] },
      ])
      return { about: id, mustEnd: [id] }
    },
  },
  {
    name: 'a group that counts too few while its items wait',
    code: 'group-count',
    async seed(site, id) {
      const child = envelope(`${id}-child`, site, { groupId: id, parent: id })
      await commit(site, [
        born(envelope(id, site), { delayMs: 3_600_000 }),
        born(child, { delayMs: 3_600_000 }),
        { guard: { by: 'none' }, effects: [{ do: 'leaveGroup', groupId: id, count: 1 }] },
      ])
      return { about: id, mustEnd: [] }
    },
  },
  {
    name: 'work in a queue that nobody looks at',
    code: 'no-worker',
    async seed(site, id) {
      await commit(site, [born(envelope(id, site), { queue: 'lonely' })])
      return { about: id, mustEnd: [id] }
    },
    async remedy({ actions }, id) {
      await actions.cancel(id, { who: 'ann' })
    },
  },
  {
    name: 'work of a type that no worker knows',
    code: 'unknown-type',
    async seed(site, id) {
      await commit(site, [born(envelope(id, site, { type: 'forgotten' }))])
      return { about: id, mustEnd: [id] }
    },
    async remedy({ actions }, id) {
      await actions.cancel(id, { who: 'ann' })
    },
  },
  {
    name: 'a run that was cut off, where workers are alive and do not look',
    code: 'lease-lapsed',
    async seed(site, id) {
      await commit(site, [born(envelope(id, site), { queue: 'asleep' })])
      await site.context.ledger.claim({
        queues: [{ queue: 'asleep', max: 1 }],
        leaseMs: 1_000,
        worker: 'gone',
      })
      return { about: id, mustEnd: [] }
    },
  },
]

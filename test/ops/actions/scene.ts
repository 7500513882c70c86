import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { type AnyWorkBuilder, createWork, defineWork, memoryBackend } from '../../../src/index.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import { openOpsContext } from '../../../src/ops/context.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'

export const BY = { who: 'ann', why: 'the bank is back' } as const

/** Whether charges fail, and of what: tests change it between runs. */
export interface Bank {
  failure: Error | undefined
  readonly runs: string[]
}

/** A fleet of one on a memory backend, work that fails while the bank is down, and ops that act on it from outside. */
export function scene({ attempts = 1, others = [] as readonly AnyWorkBuilder[] } = {}) {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const bank: Bank = { failure: new Error('the bank is down'), runs: [] }
  const charge = defineWork(
    'charge',
    (order: string, ctx) => {
      bank.runs.push(order)
      if (bank.failure !== undefined) throw bank.failure
      return ctx.result(order)
    },
    { retry: { attempts, base: 10_000, jitter: 0 } },
  )
  const noop = defineWork('noop', (_: null, ctx) => ctx.void())
  const w = createWork({ backend, clock, work: [charge, noop, ...others], random: () => 0 })
  const context = openOpsContext(overPlainPorts, backend, { clock })
  /** Enqueues that many charges and lets them run. */
  const charged = async (count: number): Promise<string[]> => {
    const ids = await Promise.all(
      Array.from({ length: count }, async (_, n) => (await w.enqueue(charge(`order ${n}`)).accepted()).id),
    )
    await clock.advance(1_000)
    return ids
  }
  const item = async (id: string) => (await context.ledger.read([id]))[0]
  /** How many are open in the group of an item. */
  const open = async (id: string) => (await context.ledger.groups([(await item(id))?.envelope.groupId ?? '']))[0]?.open
  const statuses = async (ids: readonly string[]) => (await context.ledger.read(ids)).map((view) => view?.status)
  return {
    clock,
    backend,
    bank,
    charge,
    noop,
    w,
    context,
    actions: openActions(context),
    charged,
    open,
    item,
    statuses,
  }
}

import type { ClaimedItem } from '../../../ports/item.js'
import type { Ledger } from '../../../ports/ledger.js'
import type { Effect, Settlement } from '../../../ports/settlement.js'
import type { Capability } from '../capability.js'
import { holds, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import type { Fate } from '../mortal.js'
import { byLease, complete, deadLetter, type LedgerBench, notifyGate, retry, setGroupValue } from './bench.js'

/** What a process does, step by step, that may be cut short; and how every item of it is to be settled. */
interface Deed {
  /** Enqueued before, by a process that lives. */
  readonly before: (bench: LedgerBench) => readonly Settlement[]
  readonly act: (bench: LedgerBench, ledger: Ledger) => Promise<void>
  /** What the caller repeats when it got no answer. */
  readonly again?: (bench: LedgerBench) => readonly Settlement[]
  /** The settlement of a run: the same ids each time, as an engine that plans its children makes them. */
  readonly settle: (bench: LedgerBench, claimed: ClaimedItem) => Settlement
  /** What must be true at the end: the status of every item, and the value of the group. */
  readonly statuses: Readonly<Record<string, 'completed' | 'dead'>>
  readonly value?: string
}

/** Far above the number of calls that any deed makes: a deed that never completes is a fault of its own. */
const MOST_CALLS = 150
const GROUP = 'g'
const LEASE_TICKS = 30

/**
 * Cuts the deed short at its first call, then at its second, and so on until it is not cut short any more; each time in a
 * new world, and each time lets another process find what is left and bring it to its end.
 */
async function cutShortEverywhere(bench: LedgerBench, kind: Fate['kind'], deed: Deed): Promise<void> {
  for (const when of ['before', 'after'] as const) {
    let atCall = 1
    while (await cutShort(await bench.fresh(), { kind, when, atCall }, deed)) {
      atCall += 1
      holds(atCall < MOST_CALLS, `the deed completes within ${MOST_CALLS} calls of the ports`)
    }
    holds(atCall > 1, 'the deed calls the ports at least once')
  }
}

async function cutShort(bench: LedgerBench, fate: Fate, deed: Deed): Promise<boolean> {
  const where = `(cut short ${fate.when} call ${fate.atCall})`
  const tally = new Tally(where)
  const mortal = await bench.mortal(fate)
  tally.count(await bench.ledger.commit(deed.before(bench)))
  await Promise.race([deed.act(bench, mortal.ledger), mortal.death])
  const survivor = await bench.again()
  if (deed.again !== undefined && fate.kind === 'dies') tally.count(await survivor.commit(deed.again(bench)))
  await bringToAnEnd(bench, survivor, deed, tally)
  await checkTheEnd(bench, survivor, deed, tally)
  return mortal.hasMet()
}

/** What a caller does whose commit got no answer, or failed in a port: the same again. */
async function persist(ledger: Ledger, settlement: Settlement): Promise<void> {
  for (let tries = 0; tries < 5; tries += 1) {
    const results = await ledger.commit([settlement]).catch(() => undefined)
    if (results !== undefined && results[0]?.kind !== 'failed') return
  }
}

/** Another process claims, runs and settles until nothing comes any more, while leases of the dead run out. */
async function bringToAnEnd(bench: LedgerBench, ledger: Ledger, deed: Deed, tally: Tally): Promise<void> {
  const { time } = bench
  let idle = 0
  for (let round = 0; idle < 3 && round < 40; round += 1) {
    const { items } = await bench.claim({ ledger, leaseTicks: LEASE_TICKS, runs: true })
    for (const claimed of items) {
      const [result] = await ledger.commit([deed.settle(bench, claimed)])
      tally.run(claimed.lease.id, result?.kind)
      if (result !== undefined) tally.count([result])
    }
    idle = items.length === 0 ? idle + 1 : 0
    // Not while items come: a chain of children is followed within the leases of the living.
    if (items.length === 0) await time.pass(time.ms(LEASE_TICKS + 1))
  }
}

async function checkTheEnd(bench: LedgerBench, ledger: Ledger, deed: Deed, tally: Tally): Promise<void> {
  const names = Object.keys(deed.statuses)
  const views = await ledger.read(names)
  const statuses = Object.fromEntries(names.map((id, i) => [id, views[i]?.status]))
  same(statuses, { ...deed.statuses }, `the statuses at the end ${tally.where}`)
  const [group] = await ledger.groups([GROUP])
  same([group?.open, group?.value], [0, deed.value], `open count and value of the group at the end ${tally.where}`)
  tally.check()
  const { items } = await bench.claim({ ledger })
  same(
    items.map(({ lease }) => lease.id),
    [],
    `items still claimable at the end ${tally.where}`,
  )
}

/** How often things happened, as far as the surviving processes know. */
class Tally {
  readonly where: string
  readonly #settled = new Map<string, number>()
  #closes = 0

  constructor(where: string) {
    this.where = where
  }

  count(results: readonly { readonly kind: string }[]): void {
    for (const result of results) {
      holds(
        ['applied', 'repeated', 'stale'].includes(result.kind),
        `every settlement of the living is applied, repeated or stale: ${show(result)} ${this.where}`,
      )
      if ('closed' in result && Array.isArray(result.closed)) this.#closes += result.closed.length
    }
  }

  run(id: string, kind: string | undefined): void {
    if (kind === 'applied') this.#settled.set(id, (this.#settled.get(id) ?? 0) + 1)
  }

  check(): void {
    for (const [id, times] of this.#settled)
      holds(times <= 1, `${id} is settled once, not ${times} times ${this.where}`)
    holds(this.#closes <= 1, `the group closes at most once, not ${this.#closes} times ${this.where}`)
  }
}

// ── the deeds ──

const root = (bench: LedgerBench) => bench.item('root', { groupId: GROUP })

const anEnqueue: Deed = {
  before: () => [],
  act: (bench, ledger) => persist(ledger, bench.enqueue(root(bench))),
  again: (bench) => [bench.enqueue(root(bench))],
  settle: (_, claimed) => complete(claimed, '1'),
  statuses: { root: 'completed' },
}

/** Children, a gate over them, a group value, and the end. */
const fanOut = (bench: LedgerBench): readonly Effect[] => [
  setGroupValue(GROUP, '"v"'),
  { do: 'joinGroup', groupId: GROUP, count: 2 },
  ...['c1', 'c2'].map((id) => bench.enqueueEffect(id, { groupId: GROUP, gates: ['gate of gate'] })),
  ...bench.gated('gate', ['c1', 'c2'], { groupId: GROUP }).effects,
]

const settleFanOut: Deed['settle'] = (bench, claimed) => {
  const { id } = claimed.lease
  if (id === 'root') return complete(claimed, '1', fanOut(bench))
  return complete(claimed, '1', id === 'gate' ? [] : [notifyGate('gate', id)])
}

const familyOf = { root: 'completed', c1: 'completed', c2: 'completed', gate: 'completed' } as const

async function runOne(bench: LedgerBench, ledger: Ledger, settle: Deed['settle']): Promise<void> {
  const reply = await bench.claim({ ledger, leaseTicks: LEASE_TICKS, max: 1, runs: true }).catch(() => undefined)
  for (const claimed of reply?.items ?? []) await persist(ledger, settle(bench, claimed))
}

const aFanOut: Deed = {
  before: (bench) => [bench.enqueue(root(bench))],
  act: (bench, ledger) => runOne(bench, ledger, settleFanOut),
  settle: settleFanOut,
  statuses: familyOf,
  value: '"v"',
}

/** The last member of a gate: its end frees the gate item. */
const aLastMember: Deed = {
  before: (bench) => [
    bench.enqueue('c1', { groupId: GROUP, gates: ['gate of gate'] }),
    bench.gated('gate', ['c1'], { groupId: GROUP }),
  ],
  act: (bench, ledger) => runOne(bench, ledger, settleFanOut),
  settle: settleFanOut,
  statuses: { c1: 'completed', gate: 'completed' },
}

const aRetry: Deed = {
  before: (bench) => [bench.enqueue(root(bench))],
  act: (bench, ledger) => runOne(bench, ledger, (_, claimed) => retry(claimed, bench.time.ms(2))),
  settle: (_, claimed) => complete(claimed, '1'),
  statuses: { root: 'completed' },
}

const aRelease: Deed = {
  ...aRetry,
  act: (bench, ledger) =>
    runOne(bench, ledger, (_, { lease }) =>
      byLease(lease, [{ do: 'release', id: lease.id, delayMs: bench.time.ms(2) }]),
    ),
}

const aDeath: Deed = {
  before: (bench) => [bench.enqueue(root(bench))],
  act: (bench, ledger) => runOne(bench, ledger, (_, claimed) => deadLetter(claimed)),
  settle: (_, claimed) => deadLetter(claimed),
  statuses: { root: 'dead' },
}

const hint =
  'the order of the steps: record, count once by a marker, enqueue, ack last; and how a later claim resumes them.'
const needs = ['crash points', 'exact time'] as const
const counting = [...needs, 'counts once'] as const

const dying = (what: string, deed: Deed, needed: readonly Capability[] = counting) => ({
  law: `A process that dies at any call of its ports while it ${what} loses nothing and doubles nothing: other processes complete it.`,
  hint,
  needs: needed,
  run: (bench: LedgerBench) => cutShortEverywhere(bench, 'dies', deed),
})

const stumbling = (what: string, deed: Deed) => ({
  law: `When any one call of a port fails while a process ${what}, repeating the commit completes it, once.`,
  hint,
  needs,
  run: (bench: LedgerBench) => cutShortEverywhere(bench, 'stumbles', deed),
})

export const crashClauses = clausesOn<LedgerBench>()({
  'ledger: a crash during an enqueue loses and doubles nothing': dying('enqueues', anEnqueue),
  'ledger: a crash during a fan-out loses and doubles nothing': dying(
    'settles a parent with children and a gate',
    aFanOut,
  ),
  'ledger: a crash while a gate is freed loses and doubles nothing': dying(
    'settles the last member of a gate',
    aLastMember,
  ),
  'ledger: a crash during a retry loses and doubles nothing': dying('retries an item', aRetry, needs),
  'ledger: a crash during a release loses and doubles nothing': dying('releases an item', aRelease, needs),
  'ledger: a crash during a dead-lettering loses and doubles nothing': dying('dead-letters an item', aDeath),
  'ledger: a failed call during an enqueue is repaired by repeating it': stumbling('enqueues', anEnqueue),
  'ledger: a failed call during a fan-out is repaired by repeating it': stumbling(
    'settles a parent with children',
    aFanOut,
  ),
  'ledger: a failed call while a gate is freed is repaired by repeating it': stumbling(
    'settles a last member',
    aLastMember,
  ),
  'ledger: a failed call during a retry is repaired by repeating it': stumbling('retries an item', aRetry),
  'ledger: a failed call during a dead-lettering is repaired by repeating it': stumbling(
    'dead-letters an item',
    aDeath,
  ),
})

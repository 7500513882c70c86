import type { Effect } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { commitOne, complete, deadLetter, type LedgerBench, notifyGate, release, retry } from './bench.js'

/** Enqueues the members and the gate that waits for them, and claims the members. */
async function opened<const Names extends readonly string[]>(
  bench: LedgerBench,
  members: Names,
  how: Parameters<LedgerBench['gated']>[2] = {},
) {
  const batch = members.map((id) => bench.enqueue(id, { gates: ['gate of gate'] }))
  await bench.apply('the enqueues', [...batch, bench.gated('gate', members, how)])
  return bench.take(members)
}

/** The gate item is claimable, exactly now, with this verdict. */
async function freed(bench: LedgerBench, met: boolean | undefined) {
  const [gate] = await bench.take(['gate'])
  same(gate.gate, met === undefined ? undefined : { met }, 'what the gate decided')
  return gate
}

export const gateClauses = clausesOn<LedgerBench>()({
  'ledger: a gate frees its item when all members have ended': {
    law: 'An item held by a gate is not claimable before `need` members have ended, and is claimable immediately after.',
    hint: 'whether an enqueue with a hold stays out of the ready index, and whether the last notifyGate moves it there.',
    async run(bench) {
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'])
      const { status, hold } = await bench.view('gate')
      same([status, hold?.by], ['pending', 'gate'], 'status and hold of the waiting item')
      await bench.apply('the first end', [complete(a, '1', [notifyGate('gate', 'a')])])
      await bench.apply('the second end', [complete(b, '1', [notifyGate('gate', 'b')])])
      await bench.nothingToClaim('with two of three members')
      await bench.apply('the third end', [complete(c, '1', [notifyGate('gate', 'c')])])
      await freed(bench, true)
    },
  },
  'ledger: a gate sums the members that one batch ends': {
    law: 'All members that end in one batch count; the item is freed once.',
    hint: 'whether changes of a batch to one gate overwrite each other.',
    async run(bench) {
      const taken = await opened(bench, ['a', 'b', 'c', 'd', 'e'])
      await bench.apply(
        'five ends in one batch',
        taken.map((claimed) => complete(claimed, '1', [notifyGate('gate', claimed.lease.id)])),
      )
      const gate = await freed(bench, true)
      await bench.apply('the end of the gate item', [complete(gate)])
      await bench.nothingToClaim('after the gate item ended')
    },
  },
  'ledger: a gate counts a member that notifies it twice once': {
    law: 'The first word about a member counts; a repeated one changes nothing, in one batch or later.',
    hint: 'whether the gate remembers which members it has counted.',
    async run(bench) {
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'])
      await bench.apply('an end that notifies twice', [
        complete(a, '1', [notifyGate('gate', 'a'), notifyGate('gate', 'a')]),
      ])
      const again = {
        guard: { by: 'none' },
        effects: [notifyGate('gate', 'a'), notifyGate('gate', 'a', false)],
      } as const
      await bench.apply('four more words about the same member', [again, again])
      await bench.nothingToClaim('with one of three members, notified six times')
      await bench.apply('the second end', [complete(b, '1', [notifyGate('gate', 'b')])])
      await bench.nothingToClaim('with two of three members')
      await bench.apply('the third end', [complete(c, '1', [notifyGate('gate', 'c')])])
      await freed(bench, true)
    },
  },
  'ledger: a gate counts members that have already ended': {
    law: 'Opening a gate counts the members that have ended by then, in the same step; a gate that is met frees its item immediately.',
    hint: 'whether openGate reads the status of its members.',
    async run(bench) {
      const members = ['a', 'b', 'c']
      await bench.enqueueItems(members)
      const [a, b, c] = await bench.take(['a', 'b', 'c'])
      await bench.apply('two ends, before the gate exists', [complete(a), complete(b)])
      await bench.apply('the gate', [bench.gated('gate', members)])
      await bench.nothingToClaim('with two of three members')
      await bench.apply('the third end', [complete(c, '1', [notifyGate('gate', 'c')])])
      const gate = await freed(bench, true)
      await bench.apply('the end of the gate item', [complete(gate)])
      await bench.apply('a gate over three completed members', [bench.gated('second', members)])
      const [second] = await bench.take(['second'])
      same(second.gate, { met: true }, 'what the second gate decided')
    },
  },
  'ledger: an ending item notifies its gates by itself': {
    law:
      'An item that ends notifies the gates that were opened over it, also when its settlement names none: a gate that was ' +
      'opened later is not in its envelope.',
    hint: 'whether complete and deadLetter find the gates that wait for the item.',
    async run(bench) {
      await bench.enqueueItems(['a', 'b'])
      await bench.apply('the gate', [bench.gated('gate', ['a', 'b'])])
      const [a, b] = await bench.take(['a', 'b'])
      await bench.apply('an end that names no gate', [complete(a)])
      await bench.nothingToClaim('with one of two members')
      await bench.apply('another one', [complete(b)])
      const gate = await freed(bench, true)
      await bench.apply('the end of the gate item', [complete(gate)])
    },
  },
  'ledger: a member that ends with the opening of its gate counts once': {
    law: 'When one settlement ends a member, opens its gate and notifies it, the gate counts the member once.',
    hint: 'the order of effects within a settlement: complete, openGate and notifyGate concern one member.',
    async run(bench) {
      const [a, b] = await bench.enqueueAndTake(['a', 'b'])
      const effects: readonly Effect[] = [...bench.gated('gate', ['a', 'b']).effects, notifyGate('gate', 'a')]
      await bench.apply('the end of a member that opens the gate', [complete(a, '1', effects)])
      await bench.nothingToClaim('with one of two members')
      await bench.apply('the other end', [complete(b, '1', [notifyGate('gate', 'b')])])
      await freed(bench, true)
    },
  },
  'ledger: a gate that cannot be met frees its item immediately': {
    law: '`need` above what is left is impossible: the item is freed with `met: false`, also at the opening.',
    hint: 'the comparison need > left after every notifyGate and at the opening.',
    async run(bench) {
      const [a, b] = await opened(bench, ['a', 'b', 'c'])
      await bench.apply('a member that died', [deadLetter(a, 'Error: dead', [notifyGate('gate', 'a', false)])])
      const gate = await freed(bench, false)
      await bench.apply('the rest', [complete(b, '1', [notifyGate('gate', 'b')]), complete(gate)])
      await bench.nothingToClaim('after the gate item ended')
      const hopeless = bench.gated('hopeless', ['a', 'x'], { need: 2 })
      const tooMany = bench.gated('too many', ['x'], { need: 2 })
      await bench.apply('gates that are impossible from the start', [hopeless, tooMany])
      const [first, second] = await bench.take(['hopeless', 'too many'])
      same([first.gate, second.gate], [{ met: false }, { met: false }], 'what they decided')
    },
  },
  'ledger: a gate may need a count, of ends or of successes': {
    law: '`of: done` counts any end, `of: success` only successes; the item is freed when `need` is reached.',
    hint: 'which notifications lower `need`, and which only lower what is left.',
    async run(bench) {
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'], { need: 2, of: 'done' })
      const other = bench.gated('strict', ['a', 'b', 'c'], { need: 1, of: 'success' })
      await bench.apply('a second gate over the same members', [other])
      const both = (id: string, ok: boolean) => [notifyGate('gate', id, ok), notifyGate('strict', id, ok)]
      await bench.apply('a member that died', [deadLetter(a, 'Error: dead', both('a', false))])
      await bench.nothingToClaim('with one end and no success')
      await bench.apply('another one', [deadLetter(b, 'Error: dead', both('b', false))])
      const gate = await freed(bench, true)
      await bench.apply('the third, a success', [complete(c, '1', both('c', true)), complete(gate)])
      const [strict] = await bench.take(['strict'])
      same(strict.gate, { met: true }, 'what the gate for one success decided')
    },
  },
  'ledger: a gate over nothing is met': {
    law: '`need` of 0 is met at the opening.',
    hint: 'the comparison need <= 0 at the opening.',
    async run(bench) {
      await bench.apply('a gate without members', [bench.gated('gate', [])])
      await freed(bench, true)
    },
  },
  'ledger: a gate item whose time is up is claimed without a verdict': {
    law: 'A held item is freed at its due time at the latest; then it has no verdict, and later notifications change nothing.',
    hint: 'whether held items with a due time are promoted, and whether that ends the gate.',
    async run(bench) {
      const { time } = bench
      const [a, b] = await opened(bench, ['a', 'b'], { delayMs: time.ms(4) })
      await time.pass(time.ms(2))
      await bench.apply('one end', [complete(a, '1', [notifyGate('gate', 'a')])])
      await bench.nothingToClaim('before the time is up')
      await time.pass(time.ms(3))
      const gate = await freed(bench, undefined)
      await bench.apply('the other end, too late', [complete(b, '1', [notifyGate('gate', 'b')])])
      await bench.nothingToClaim('while the gate item runs')
      await bench.apply('the end of the gate item', [complete(gate)])
      await bench.nothingToClaim('after it ended')
    },
  },
  'ledger: a freed gate item is freed once': {
    law: 'After a verdict, further notifications neither free the item again nor change the verdict: a release or a retry keeps it.',
    hint: 'whether a gate that has decided is marked as freed.',
    async run(bench) {
      const { ledger } = bench
      const [a, b] = await opened(bench, ['a', 'b'], { need: 1 })
      await bench.apply('the end that meets the gate', [complete(a, '1', [notifyGate('gate', 'a')])])
      const first = await freed(bench, true)
      await bench.apply('one more', [complete(b, '1', [notifyGate('gate', 'b')])])
      await bench.nothingToClaim('while the gate item runs')
      await bench.apply('a release of the gate item', [release(first)])
      const second = await freed(bench, true)
      await bench.apply('a retry of the gate item', [retry(second, 0)])
      const gate = await freed(bench, true)
      await bench.apply('the end of the gate item', [complete(gate)])
      const late = await commitOne(ledger, {
        guard: { by: 'none' },
        effects: [notifyGate('gate', 'b'), notifyGate('no such gate', 'x')],
      })
      same(late.kind, 'applied', 'notifications of a gate that has decided, and of one that never existed')
      await bench.nothingToClaim('after it ended')
    },
  },
  'ledger: a stale settlement notifies no gate': {
    law: 'The guard covers `notifyGate` like every other effect.',
    hint: 'whether notifyGate is applied before the guard is checked.',
    async run(bench) {
      const { ledger, time } = bench
      await bench.apply('the enqueues', [bench.enqueue('a'), bench.gated('gate', ['a'])])
      const [old] = await bench.take(['a'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [current] = await bench.take(['a'])
      same(await commitOne(ledger, complete(old, '1', [notifyGate('gate', 'a')])), { kind: 'stale' }, 'the late end')
      await bench.nothingToClaim('after the late end')
      await bench.apply('the end in time', [complete(current, '1', [notifyGate('gate', 'a')])])
      await freed(bench, true)
    },
  },
  'ledger: a gate belongs to its group from the start': {
    law: 'A settlement may enqueue children and the gate that waits for them; the group closes when the gate item has ended.',
    hint: 'whether a held item is counted as open.',
    async run(bench) {
      const [root] = await bench.enqueueAndTake(['root'], { groupId: 'g' })
      const children = ['c1', 'c2'].map((id) => bench.enqueueEffect(id, { groupId: 'g', gates: ['gate of gate'] }))
      const plan: readonly Effect[] = [
        { do: 'joinGroup', groupId: 'g', count: 2 },
        ...children,
        ...bench.gated('gate', ['c1', 'c2'], { groupId: 'g' }).effects,
      ]
      await bench.apply('the end of the root', [complete(root, undefined, plan)])
      const [c1, c2] = await bench.take(['c1', 'c2'])
      const ends = [complete(c1, '1', [notifyGate('gate', 'c1')]), complete(c2, '1', [notifyGate('gate', 'c2')])]
      same(await bench.apply('the ends of the children', ends), [], 'groups closed by the children')
      const gate = await freed(bench, true)
      same(await bench.apply('the end of the gate item', [complete(gate)]), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: a process notifies gates that another process opened': {
    law: 'A gate that one process opened is notified by another.',
    hint: 'whether gates live in the backend.',
    async run(bench) {
      const other = await bench.again()
      await bench.apply('the enqueues', [bench.enqueue('a'), bench.gated('gate', ['a'])])
      const [a] = await bench.take(['a'], { ledger: other })
      await bench.apply('the end, in the other process', [complete(a, '1', [notifyGate('gate', 'a')])], other)
      const gate = await freed(bench, true)
      holds(gate.envelope.id === 'gate', 'the gate item is claimed')
    },
  },
})

import type { Effect } from '../../../ports/settlement.js'
import { holds, same } from '../check.js'
import { clausesOn } from '../clause.js'
import {
  applied,
  commitOne,
  enqueue,
  finish,
  gated,
  item,
  type LedgerBench,
  nothingToClaim,
  park,
  push,
  release,
  retry,
  take,
  tell,
  view,
} from './bench.js'

/** Enqueues the members and the gate that waits for them, and claims the members. */
async function opened<const Names extends readonly string[]>(
  bench: LedgerBench,
  members: Names,
  how: Parameters<typeof gated>[3] = {},
) {
  const batch = members.map((id) => enqueue(bench, item(bench, id, { gates: ['gate of gate'] })))
  await applied(bench.ledger, [...batch, gated(bench, 'gate', members, how)], 'the enqueues')
  return take(bench, members)
}

/** The gate item is claimable, exactly now, with this verdict. */
async function freed(bench: LedgerBench, met: boolean | undefined) {
  const [gate] = await take(bench, ['gate'])
  same(gate.gate, met === undefined ? undefined : { met }, 'what the gate decided')
  return gate
}

export const gateClauses = clausesOn<LedgerBench>()({
  'ledger: a gate frees its item when all members have come': {
    law: 'An item held by a gate is not claimable before `need` members have been told, and is at once after.',
    look: 'whether a push with a hold stays out of the ready index, and whether the last tell moves it there.',
    async run(bench) {
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'])
      const { status, hold } = await view(bench, 'gate')
      same([status, hold?.by], ['pending', 'gate'], 'status and hold of the waiting item')
      await applied(bench.ledger, [finish(a, '1', [tell('gate', 'a')])], 'the first end')
      await applied(bench.ledger, [finish(b, '1', [tell('gate', 'b')])], 'the second end')
      await nothingToClaim(bench, 'with two of three members')
      await applied(bench.ledger, [finish(c, '1', [tell('gate', 'c')])], 'the third end')
      await freed(bench, true)
    },
  },
  'ledger: members told in one batch are summed': {
    law: 'All members that end in one batch count; the item is freed once.',
    look: 'whether changes of a batch to one gate overwrite each other.',
    async run(bench) {
      const taken = await opened(bench, ['a', 'b', 'c', 'd', 'e'])
      await applied(
        bench.ledger,
        taken.map((claimed) => finish(claimed, '1', [tell('gate', claimed.lease.id)])),
        'five ends in one batch',
      )
      const gate = await freed(bench, true)
      await applied(bench.ledger, [finish(gate)], 'the end of the gate item')
      await nothingToClaim(bench, 'after the gate item ended')
    },
  },
  'ledger: a member told twice counts once': {
    law: 'The first word about a member counts; a repeated one changes nothing, in one batch or later.',
    look: 'whether the gate remembers who has been counted.',
    async run(bench) {
      const { ledger } = bench
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'])
      await applied(ledger, [finish(a, '1', [tell('gate', 'a'), tell('gate', 'a')])], 'an end that tells twice')
      const again = { guard: { by: 'none' }, effects: [tell('gate', 'a'), tell('gate', 'a', false)] } as const
      await applied(ledger, [again, again], 'four more words about the same member')
      await nothingToClaim(bench, 'with one of three members, told six times')
      await applied(ledger, [finish(b, '1', [tell('gate', 'b')])], 'the second end')
      await nothingToClaim(bench, 'with two of three members')
      await applied(ledger, [finish(c, '1', [tell('gate', 'c')])], 'the third end')
      await freed(bench, true)
    },
  },
  'ledger: a gate counts members that have already finished': {
    law: 'Opening a gate counts the members that have ended by then, in the same step; one that is met frees at once.',
    look: 'whether openGate reads the status of its members.',
    async run(bench) {
      const { ledger } = bench
      const members = ['a', 'b', 'c']
      await applied(
        ledger,
        members.map((id) => enqueue(bench, item(bench, id))),
        'the members',
      )
      const [a, b, c] = await take(bench, ['a', 'b', 'c'])
      await applied(ledger, [finish(a), finish(b)], 'two ends, before the gate exists')
      await applied(ledger, [gated(bench, 'gate', members)], 'the gate')
      await nothingToClaim(bench, 'with two of three members')
      await applied(ledger, [finish(c, '1', [tell('gate', 'c')])], 'the third end')
      const gate = await freed(bench, true)
      await applied(ledger, [finish(gate)], 'the end of the gate item')
      await applied(ledger, [gated(bench, 'second', members)], 'a gate over three finished members')
      const [second] = await take(bench, ['second'])
      same(second.gate, { met: true }, 'what the second gate decided')
    },
  },
  'ledger: a gate hears of its members without being told': {
    law:
      'An item that ends tells the gates that were opened over it, also when its settlement names none: a gate that was ' +
      'opened later is not in its envelope.',
    look: 'whether finish and park look for the gates that wait for the item.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), enqueue(bench, item(bench, 'b'))], 'the members')
      await applied(ledger, [gated(bench, 'gate', ['a', 'b'])], 'the gate')
      const [a, b] = await take(bench, ['a', 'b'])
      await applied(ledger, [finish(a)], 'an end that tells nobody')
      await nothingToClaim(bench, 'with one of two members')
      await applied(ledger, [finish(b)], 'another one')
      const gate = await freed(bench, true)
      await applied(ledger, [finish(gate)], 'the end of the gate item')
    },
  },
  'ledger: a member that ends with the opening of its gate counts once': {
    law: 'When one settlement ends a member, opens its gate and tells it, the member is counted, once.',
    look: 'the order of effects within a settlement: finished, opened and told are one member.',
    async run(bench) {
      const { ledger } = bench
      await applied(
        ledger,
        ['a', 'b'].map((id) => enqueue(bench, item(bench, id))),
        'the members',
      )
      const [a, b] = await take(bench, ['a', 'b'])
      const effects: readonly Effect[] = [...gated(bench, 'gate', ['a', 'b']).effects, tell('gate', 'a')]
      await applied(ledger, [finish(a, '1', effects)], 'the end of a member that opens the gate')
      await nothingToClaim(bench, 'with one of two members')
      await applied(ledger, [finish(b, '1', [tell('gate', 'b')])], 'the other end')
      await freed(bench, true)
    },
  },
  'ledger: a gate that cannot be met frees its item at once': {
    law: '`need` above what is left is impossible: the item is freed with `met: false`, also at the opening.',
    look: 'the comparison need > left after every tell and at the opening.',
    async run(bench) {
      const { ledger } = bench
      const [a, b] = await opened(bench, ['a', 'b', 'c'])
      await applied(ledger, [park(a, 'Error: dead', [tell('gate', 'a', false)])], 'a member that died')
      const gate = await freed(bench, false)
      await applied(ledger, [finish(b, '1', [tell('gate', 'b')]), finish(gate)], 'the rest')
      await nothingToClaim(bench, 'after the gate item ended')
      const hopeless = gated(bench, 'hopeless', ['a', 'x'], { need: 2 })
      const tooMany = gated(bench, 'too many', ['x'], { need: 2 })
      await applied(ledger, [hopeless, tooMany], 'gates that are impossible from the start')
      const [first, second] = await take(bench, ['hopeless', 'too many'])
      same([first.gate, second.gate], [{ met: false }, { met: false }], 'what they decided')
    },
  },
  'ledger: a gate may need a count, of ends or of successes': {
    law: '`of: done` counts any end, `of: success` only successes; the item is freed when `need` is reached.',
    look: 'which tells lower `need`, and which only lower what is left.',
    async run(bench) {
      const { ledger } = bench
      const [a, b, c] = await opened(bench, ['a', 'b', 'c'], { need: 2, of: 'done' })
      const other = gated(bench, 'strict', ['a', 'b', 'c'], { need: 1, of: 'success' })
      await applied(ledger, [other], 'a second gate over the same members')
      const both = (id: string, ok: boolean) => [tell('gate', id, ok), tell('strict', id, ok)]
      await applied(ledger, [park(a, 'Error: dead', both('a', false))], 'a member that died')
      await nothingToClaim(bench, 'with one end and no success')
      await applied(ledger, [park(b, 'Error: dead', both('b', false))], 'another one')
      const gate = await freed(bench, true)
      await applied(ledger, [finish(c, '1', both('c', true)), finish(gate)], 'the third, a success')
      const [strict] = await take(bench, ['strict'])
      same(strict.gate, { met: true }, 'what the gate for one success decided')
    },
  },
  'ledger: a gate over nothing is met': {
    law: '`need` of 0 is met at the opening.',
    look: 'the comparison need <= 0 at the opening.',
    async run(bench) {
      await applied(bench.ledger, [gated(bench, 'gate', [])], 'a gate without members')
      await freed(bench, true)
    },
  },
  'ledger: a gate item whose time is up is claimed without a verdict': {
    law: 'A held item is freed at its due time at the latest; then it has no verdict, and later tells change nothing.',
    look: 'whether held items with a due time are promoted, and whether the gate is over then.',
    async run(bench) {
      const { ledger, time } = bench
      const [a, b] = await opened(bench, ['a', 'b'], { delayMs: time.ms(4) })
      await time.pass(time.ms(2))
      await applied(ledger, [finish(a, '1', [tell('gate', 'a')])], 'one end')
      await nothingToClaim(bench, 'before the time is up')
      await time.pass(time.ms(3))
      const gate = await freed(bench, undefined)
      await applied(ledger, [finish(b, '1', [tell('gate', 'b')])], 'the other end, too late')
      await nothingToClaim(bench, 'while the gate item runs')
      await applied(ledger, [finish(gate)], 'the end of the gate item')
      await nothingToClaim(bench, 'after it ended')
    },
  },
  'ledger: a freed gate item is freed once': {
    law: 'After a verdict, further tells neither free the item again nor change what was decided: a put-back or a retry keeps it.',
    look: 'whether a gate that has decided is marked as freed.',
    async run(bench) {
      const { ledger } = bench
      const [a, b] = await opened(bench, ['a', 'b'], { need: 1 })
      await applied(ledger, [finish(a, '1', [tell('gate', 'a')])], 'the end that meets the gate')
      const first = await freed(bench, true)
      await applied(ledger, [finish(b, '1', [tell('gate', 'b')])], 'one more')
      await nothingToClaim(bench, 'while the gate item runs')
      await applied(ledger, [release(first)], 'a put-back of the gate item')
      const second = await freed(bench, true)
      await applied(ledger, [retry(second, 0)], 'a retry of the gate item')
      const gate = await freed(bench, true)
      await applied(ledger, [finish(gate)], 'the end of the gate item')
      const late = await commitOne(ledger, { guard: { by: 'none' }, effects: [tell('gate', 'b'), tell('nobody', 'x')] })
      same(late.kind, 'applied', 'words to a gate that is over, and to one that never was')
      await nothingToClaim(bench, 'after it ended')
    },
  },
  'ledger: a stale settlement tells no gate': {
    law: 'Tells stand behind the guard as everything else does.',
    look: 'whether tellGate is applied before the guard is known to hold.',
    async run(bench) {
      const { ledger, time } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a')), gated(bench, 'gate', ['a'])], 'the enqueues')
      const [old] = await take(bench, ['a'], { leaseTicks: 2 })
      await time.pass(time.ms(3))
      const [current] = await take(bench, ['a'])
      same(await commitOne(ledger, finish(old, '1', [tell('gate', 'a')])), { kind: 'stale' }, 'the late end')
      await nothingToClaim(bench, 'after the late end')
      await applied(ledger, [finish(current, '1', [tell('gate', 'a')])], 'the end in time')
      await freed(bench, true)
    },
  },
  'ledger: a gate belongs to its group from the start': {
    law: 'A settlement may push children and the gate that waits for them; the group closes when the gate item has ended.',
    look: 'whether a held item is counted as open.',
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'root', { groupId: 'g' }))], 'the enqueue')
      const [root] = await take(bench, ['root'])
      const children = ['c1', 'c2'].map((id) => push(bench, item(bench, id, { groupId: 'g', gates: ['gate of gate'] })))
      const plan: readonly Effect[] = [
        { do: 'openGroup', groupId: 'g', by: 2 },
        ...children,
        ...gated(bench, 'gate', ['c1', 'c2'], { groupId: 'g' }).effects,
      ]
      await applied(ledger, [finish(root, undefined, plan)], 'the end of the root')
      const [c1, c2] = await take(bench, ['c1', 'c2'])
      const ends = [finish(c1, '1', [tell('gate', 'c1')]), finish(c2, '1', [tell('gate', 'c2')])]
      same(await applied(ledger, ends, 'the ends of the children'), [], 'groups closed by the children')
      const gate = await freed(bench, true)
      same(await applied(ledger, [finish(gate)], 'the end of the gate item'), [{ groupId: 'g' }], 'groups closed by it')
    },
  },
  'ledger: gates are told across processes': {
    law: 'A gate opened by one process is told by another.',
    look: 'whether gates live in the backend.',
    async run(bench) {
      const other = await bench.again()
      await applied(bench.ledger, [enqueue(bench, item(bench, 'a')), gated(bench, 'gate', ['a'])], 'the enqueues')
      const [a] = await take(bench, ['a'], { ledger: other })
      await applied(other, [finish(a, '1', [tell('gate', 'a')])], 'the end, in the other process')
      const gate = await freed(bench, true)
      holds(gate.envelope.id === 'gate', 'the gate item is claimed')
    },
  },
})

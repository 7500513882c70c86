import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ItemView } from '../../src/ports/inspect.js'
import type { ClaimedItem, Envelope } from '../../src/ports/item.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'
import { act } from '../../src/work/control/item-actions.js'
import { enqueueHeldSettlement, enqueueSettlement } from '../../src/work/enqueue/enqueue-settlement.js'
import { route } from '../../src/work/run/route.js'
import type { FinishedRun, Outcome } from '../../src/work/settle/outcome.js'
import { closedBySingleItem } from '../../src/work/settle/report-closed-groups.js'
import { settle } from '../../src/work/settle/settle.js'

const KEEP = { completedMs: 1_000, deadMs: 2_000 }
const NOW = 10_000

function envelope(over: Partial<Envelope> = {}): Envelope {
  return {
    id: 'i',
    type: 't',
    groupId: 'g',
    input: 'null',
    queueAt: 0,
    startAt: 0,
    attempt: 1,
    priority: 0,
    retry: { attempts: 3, base: 100, factor: 2, max: 1_000, jitter: 0 },
    ...over,
  }
}

function claimed(over: Partial<ClaimedItem> = {}, of: Partial<Envelope> = {}): ClaimedItem {
  return {
    lease: { id: 'i', queue: 'default', token: 'tok', fence: 1, until: NOW + 30_000 },
    envelope: envelope(of),
    lapses: 0,
    crashes: 0,
    deliveries: 1,
    ...over,
  }
}

const ran = (outcome: Outcome, of: Partial<Envelope> = {}): FinishedRun => ({
  item: claimed({}, of),
  startedAt: NOW - 5,
  endedAt: NOW,
  worker: 'w',
  outcome,
})
const threw = (over: Partial<Extract<Outcome, { kind: 'threw' }>> = {}): Outcome => ({
  kind: 'threw',
  error: 'Error: x',
  fingerprint: 'f',
  verdict: { class: 'retryable', rule: 'default' },
  ...over,
})
const returned = (over: Partial<Extract<Outcome, { kind: 'returned' }>> = {}): Outcome => ({
  kind: 'returned',
  contributions: [],
  children: [],
  gates: [],
  ...over,
})
const verbs = (effects: readonly Effect[]) => effects.map((effect) => effect.do)
const done = (outcome: Outcome, of?: Partial<Envelope>) => settle(ran(outcome, of), KEEP, NOW, () => 0)

describe('settle', () => {
  it('counts children in before it counts their parent out', () => {
    const child = { item: envelope({ id: 'c' }), queue: 'default', delayMs: 0 }
    const { settlement, summary } = done(
      returned({ children: [child], contributions: [{ value: '1', final: false }], result: '1' }),
    )

    expect(settlement.guard).toMatchObject({ by: 'lease', lease: { token: 'tok' } })
    expect(verbs(settlement.effects)).toEqual([
      'recordAttempt',
      'joinGroup',
      'enqueue',
      'setGroupValue',
      'complete',
      'leaveGroup',
    ])
    expect(summary).toEqual({ kind: 'succeeded', result: '1' })
  })

  it('notifies the gates that count it', () => {
    const gates = ['k1', 'k2']

    expect(done(returned(), { gates }).settlement.effects.filter((e) => e.do === 'notifyGate')).toEqual([
      { do: 'notifyGate', key: 'k1', member: 'i', completed: true },
      { do: 'notifyGate', key: 'k2', member: 'i', completed: true },
    ])
    expect(done({ kind: 'expired' }, { gates }).settlement.effects.filter((e) => e.do === 'notifyGate')).toMatchObject([
      { completed: false },
      { completed: false },
    ])
  })

  it('retries with backoff and remembers the attempt with its class, rule, error, worker and times', () => {
    const { settlement, summary } = done(threw(), { attempt: 2 })

    expect(settlement.effects).toEqual([
      {
        do: 'recordAttempt',
        id: 'i',
        was: {
          attempt: 2,
          startedAt: NOW - 5,
          endedAt: NOW,
          worker: 'w',
          class: 'retryable',
          rule: 'default',
          error: 'Error: x',
          fingerprint: 'f',
        },
      },
      { do: 'retry', id: 'i', attempt: 3, delayMs: 200, reason: 'retry' },
    ])
    expect(summary).toMatchObject({ kind: 'retried', delayMs: 200 })
  })

  it.each([
    ['exhausted', threw(), { attempt: 3 }, 'exhausted', 'retryable'],
    ['poison', threw({ verdict: { class: 'poison', rule: 'explicit' } }), {}, 'aborted', 'poison'],
    ['invalid', threw({ verdict: { class: 'invalidForState', rule: 'explicit' } }), {}, 'aborted', 'invalidForState'],
    ['aborted', threw({ override: 'abort' }), {}, 'aborted', 'poison'],
    ['crashed', { kind: 'crashed', crashes: 3 } as Outcome, {}, 'crashed', 'poison'],
    ['unroutable', { kind: 'unroutable', error: 'e' } as Outcome, {}, 'unroutable', 'poison'],
  ] as const)('dead-letters an item that is %s, with its ending and class', (_, outcome, of, ending, failure) => {
    const { settlement } = done(outcome, of)

    expect(settlement.effects.find((effect) => effect.do === 'deadLetter')).toMatchObject({
      ending,
      class: failure,
      keepMs: KEEP.deadMs,
    })
    expect(verbs(settlement.effects).at(-1)).toBe('leaveGroup')
  })

  it('gives what died without a failed run a fingerprint of its ending and type; a failed run has its own', () => {
    const print = (outcome: Outcome, of?: Partial<Envelope>) => {
      const letter = done(outcome, of).settlement.effects.find((effect) => effect.do === 'deadLetter')
      return letter?.fingerprint
    }
    const without: readonly Outcome[] = [
      { kind: 'crashed', crashes: 3 },
      { kind: 'unroutable', error: 'unknown work type: w' },
      { kind: 'unreadable', error: 'bad input: x', rule: 'decode' },
      { kind: 'unreadable', error: 'no number', rule: 'schema' },
      { kind: 'expired' },
    ]
    const prints = without.map((outcome) => print(outcome))
    expect(new Set(prints).size).toBe(without.length)
    for (const one of prints) expect(one).toMatch(/^[0-9a-f]{16}$/)
    expect(print({ kind: 'crashed', crashes: 4 })).toBe(prints[0])
    expect(print({ kind: 'crashed', crashes: 3 }, { type: 'other' })).not.toBe(prints[0])
    expect(print({ kind: 'expired', hasRun: true })).toBe(prints[4])
    expect(print(threw(), { attempt: 3 })).toBeUndefined()
    expect(print({ kind: 'cancelled', why: 'w', hasRun: false })).toBeUndefined()
  })

  it('defers without spending an attempt', () => {
    const { settlement, summary } = done(
      threw({ verdict: { class: 'unclassified', rule: 'deferred', deferTo: NOW + 70 } }),
    )

    expect(settlement.effects.at(-1)).toEqual({ do: 'retry', id: 'i', attempt: 1, delayMs: 70, reason: 'deferred' })
    expect(summary).toEqual({ kind: 'deferred', runAt: NOW + 70, delayMs: 70 })
  })

  it('closes its group exactly when it ends, whatever happens', () => {
    const outcomes = fc.oneof(
      fc.constant(returned()),
      fc.constant({ kind: 'expired' } as Outcome),
      fc.record({ kind: fc.constant('crashed' as const), crashes: fc.nat(9) }),
      fc
        .record({
          class: fc.constantFrom('retryable' as const, 'poison' as const, 'invalidForState' as const),
          deferIn: fc.option(fc.nat(1_000), { nil: undefined }),
          said: fc.constantFrom('retry' as const, 'abort' as const, undefined),
        })
        .map(({ class: c, deferIn, said }) =>
          threw({
            verdict: { class: c, rule: 'r', ...(deferIn === undefined ? {} : { deferTo: NOW + deferIn }) },
            ...(said === undefined ? {} : { said }),
          }),
        ),
    )
    fc.assert(
      fc.property(
        outcomes,
        fc.integer({ min: 1, max: 5 }),
        fc.option(fc.nat(2_000), { nil: undefined }),
        (outcome, attempt, left) => {
          const { settlement, summary } = done(outcome, {
            attempt,
            ...(left === undefined ? {} : { deadline: NOW + left }),
          })
          const found = verbs(settlement.effects)
          const isOver = summary.kind === 'succeeded' || summary.kind === 'dead' || summary.kind === 'expired'
          expect(found.filter((verb) => verb === 'leaveGroup').length).toBe(isOver ? 1 : 0)
          expect(found.filter((verb) => verb === 'complete' || verb === 'deadLetter').length).toBe(isOver ? 1 : 0)
          expect(found.filter((verb) => verb === 'retry').length).toBe(isOver ? 0 : 1)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('submit', () => {
  it('opens the group and enqueues on condition that the id is absent', () => {
    expect(enqueueSettlement(envelope({ startAt: 50 }), 'q', 20)).toEqual({
      guard: { by: 'absent', id: 'i' },
      effects: [
        { do: 'joinGroup', groupId: 'g', count: 1 },
        { do: 'enqueue', item: envelope({ startAt: 50 }), queue: 'q', delayMs: 30 },
      ],
    })
  })

  it('is created under a lease where it skips the queue', () => {
    const leasedTo = { worker: 'w', token: 't', leaseMs: 100 }

    expect(enqueueHeldSettlement(envelope(), 'q', leasedTo).effects[1]).toMatchObject({
      do: 'enqueue',
      delayMs: 0,
      leasedTo,
    })
  })
})

describe('act', () => {
  const view = (over: Partial<ItemView>): ItemView => ({
    envelope: envelope({ gates: ['k'] }),
    status: 'pending',
    ...over,
  })
  const how = { who: 'ada', why: 'wrong customer', keep: KEEP }

  it('cancels what waits by dead-lettering it, and what runs by marking it', () => {
    expect(verbs(act(view({}), 'cancel', how)!.effects)).toEqual(['deadLetter', 'leaveGroup', 'notifyGate', 'log'])
    expect(verbs(act(view({ status: 'running' }), 'cancel', how)!.effects)).toEqual(['requestCancel', 'log'])
  })

  it('acts only on the status it saw, and logs who and why', () => {
    const settlement = act(view({ status: 'dead' }), 'redrive', how)

    expect(settlement?.guard).toEqual({ by: 'status', id: 'i', in: ['dead'] })
    expect(verbs(settlement!.effects)).toEqual(['joinGroup', 'redrive', 'log'])
    expect(settlement!.effects.at(-1)).toMatchObject({ who: 'ada', why: 'wrong customer', what: 'redrive i' })
  })

  it('has nothing to do where the action makes no sense', () => {
    expect(act(view({ status: 'completed' }), 'cancel', how)).toBeUndefined()
    expect(act(view({ status: 'pending' }), 'redrive', how)).toBeUndefined()
    expect(act(view({ status: 'running' }), 'discard', how)).toBeUndefined()
    expect(act(view({ status: 'dead' }), 'runNow', how)).toBeUndefined()
    expect(verbs(act(view({ status: 'dead' }), 'discard', how)!.effects)).toEqual(['delete', 'log'])
    expect(verbs(act(view({}), 'runNow', how)!.effects)).toEqual(['release', 'log'])
  })
})

describe('route', () => {
  it('expires before anything else', () => {
    expect(route(claimed({ crashes: 9 }, { deadline: NOW - 1 }), 'unknown', NOW)).toEqual({
      kind: 'end',
      outcome: { kind: 'expired' },
    })
  })

  it('blames the item itself after three crashes, and no fewer', () => {
    expect(route(claimed({ crashes: 2 }), 'known', NOW).kind).toBe('run')
    expect(route(claimed({ crashes: 3 }), 'known', NOW)).toMatchObject({ outcome: { kind: 'crashed', crashes: 3 } })
    expect(route(claimed({ crashes: 3 }, { retry: { attempts: 10 } }), 'known', NOW).kind).toBe('run')
  })

  it('puts an unknown type back for longer each time, and ends it in the end', () => {
    const waits = [1, 2, 3, 11].map((deliveries) => route(claimed({ deliveries }), 'unknown', NOW))

    expect(waits).toEqual([5_000, 10_000, 20_000, 300_000].map((afterMs) => ({ kind: 'back', afterMs })))
    expect(route(claimed({ deliveries: 12 }), 'unknown', NOW)).toMatchObject({ outcome: { kind: 'unroutable' } })
  })
})

describe('closedBySingleItem', () => {
  const settlement = (...effects: readonly Effect[]): Settlement => ({ guard: { by: 'none' }, effects })
  const finish: Effect = { do: 'complete', id: 'a', ending: 'completed', keepMs: 1 }
  const head = envelope({ id: 'a', groupId: 'g' })

  it('knows the group and the value of a root that ended and queued nothing', () => {
    const said: Effect = { do: 'setGroupValue', groupId: 'g', value: '7', final: false }
    expect(closedBySingleItem(head, settlement(said, finish))).toEqual({
      groupId: 'g',
      value: '7',
      watched: true,
      isFolded: false,
    })
    expect(closedBySingleItem(head, settlement(finish))).toEqual({ groupId: 'g', watched: true, isFolded: false })
  })

  it('says when the value was folded, and hence may have been folded on itself', () => {
    const said: Effect = { do: 'setGroupValue', groupId: 'g', value: '[7,7]', final: false, ifVersion: 1 }
    expect(closedBySingleItem(head, settlement(said, finish))).toMatchObject({ isFolded: true })
  })

  it('knows nothing where others are or may be in the group, or where nothing has ended', () => {
    const push: Effect = { do: 'enqueue', item: envelope({ id: 'b', groupId: 'g' }), queue: 'default', delayMs: 0 }
    const again: Effect = { do: 'retry', id: 'a', attempt: 2, delayMs: 1, reason: 'retry' }
    expect(closedBySingleItem(head, settlement(push, finish))).toBeUndefined()
    expect(closedBySingleItem({ ...head, parent: 'p' }, settlement(finish))).toBeUndefined()
    expect(closedBySingleItem(head, settlement(again))).toBeUndefined()
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Claimed, Envelope } from '../../src/ports/item.js'
import type { ItemView } from '../../src/ports/ledger.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'
import { act } from '../../src/work/act.js'
import { closedAlone } from '../../src/work/closed-alone.js'
import type { Outcome, Ran } from '../../src/work/outcome.js'
import { route } from '../../src/work/route.js'
import { settle } from '../../src/work/settle.js'
import { submit, submitHeld } from '../../src/work/submit.js'

const KEEP = { successMs: 1_000, deadMs: 2_000 }
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

function claimed(over: Partial<Claimed> = {}, of: Partial<Envelope> = {}): Claimed {
  return {
    lease: { id: 'i', queue: 'default', token: 'tok', fence: 1, until: NOW + 30_000 },
    envelope: envelope(of),
    lapses: 0,
    crashes: 0,
    deliveries: 1,
    ...over,
  }
}

const ran = (outcome: Outcome, of: Partial<Envelope> = {}): Ran => ({
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
    const { settlement, told } = done(
      returned({ children: [child], contributions: [{ value: '1', final: false }], result: '1' }),
    )

    expect(settlement.guard).toMatchObject({ by: 'lease', lease: { token: 'tok' } })
    expect(verbs(settlement.effects)).toEqual([
      'recordAttempt',
      'openGroup',
      'push',
      'contribute',
      'finish',
      'closeGroup',
    ])
    expect(told).toEqual({ kind: 'succeeded', result: '1' })
  })

  it('tells the gates that count it', () => {
    const gates = ['k1', 'k2']

    expect(done(returned(), { gates }).settlement.effects.filter((e) => e.do === 'tellGate')).toEqual([
      { do: 'tellGate', key: 'k1', member: 'i', ok: true },
      { do: 'tellGate', key: 'k2', member: 'i', ok: true },
    ])
    expect(done({ kind: 'expired' }, { gates }).settlement.effects.filter((e) => e.do === 'tellGate')).toMatchObject([
      { ok: false },
      { ok: false },
    ])
  })

  it('retries with backoff and remembers the attempt with its class, rule, error, worker and times', () => {
    const { settlement, told } = done(threw(), { attempt: 2 })

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
      { do: 'retryAt', id: 'i', attempt: 3, delayMs: 200, why: 'retry' },
    ])
    expect(told).toMatchObject({ kind: 'retried', delayMs: 200 })
  })

  it.each([
    ['exhausted', threw(), { attempt: 3 }, 'exhausted', 'retryable'],
    ['poison', threw({ verdict: { class: 'poison', rule: 'explicit' } }), {}, 'aborted', 'poison'],
    ['invalid', threw({ verdict: { class: 'invalidForState', rule: 'explicit' } }), {}, 'aborted', 'invalidForState'],
    ['told to abort', threw({ said: 'abort' }), {}, 'aborted', 'poison'],
    ['crashed', { kind: 'crashed', crashes: 3 } as Outcome, {}, 'crashed', 'poison'],
    ['unroutable', { kind: 'unroutable', error: 'e' } as Outcome, {}, 'unroutable', 'poison'],
  ] as const)('parks what is %s, with its ending and class', (_, outcome, of, ending, failure) => {
    const { settlement } = done(outcome, of)

    expect(settlement.effects.find((effect) => effect.do === 'park')).toMatchObject({
      ending,
      class: failure,
      keepMs: KEEP.deadMs,
    })
    expect(verbs(settlement.effects).at(-1)).toBe('closeGroup')
  })

  it('gives what died without a failed run a fingerprint of its ending and type; a failed run has its own', () => {
    const print = (outcome: Outcome, of?: Partial<Envelope>) => {
      const park = done(outcome, of).settlement.effects.find((effect) => effect.do === 'park')
      return park?.fingerprint
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
    const { settlement, told } = done(
      threw({ verdict: { class: 'unclassified', rule: 'deferred', deferTo: NOW + 70 } }),
    )

    expect(settlement.effects.at(-1)).toEqual({ do: 'retryAt', id: 'i', attempt: 1, delayMs: 70, why: 'deferred' })
    expect(told).toEqual({ kind: 'deferred', runAt: NOW + 70, delayMs: 70 })
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
          const { settlement, told } = done(outcome, {
            attempt,
            ...(left === undefined ? {} : { deadline: NOW + left }),
          })
          const found = verbs(settlement.effects)
          const isOver = told.kind === 'succeeded' || told.kind === 'dead' || told.kind === 'expired'
          expect(found.filter((verb) => verb === 'closeGroup').length).toBe(isOver ? 1 : 0)
          expect(found.filter((verb) => verb === 'finish' || verb === 'park').length).toBe(isOver ? 1 : 0)
          expect(found.filter((verb) => verb === 'retryAt').length).toBe(isOver ? 0 : 1)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('submit', () => {
  it('opens the group and pushes behind the absence of the id', () => {
    expect(submit(envelope({ startAt: 50 }), 'q', 20)).toEqual({
      guard: { by: 'absent', id: 'i' },
      effects: [
        { do: 'openGroup', groupId: 'g', by: 1 },
        { do: 'push', item: envelope({ startAt: 50 }), queue: 'q', delayMs: 30 },
      ],
    })
  })

  it('is born under a lease where it skips the queue', () => {
    const heldBy = { worker: 'w', token: 't', leaseMs: 100 }

    expect(submitHeld(envelope(), 'q', heldBy).effects[1]).toMatchObject({ do: 'push', delayMs: 0, heldBy })
  })
})

describe('act', () => {
  const view = (over: Partial<ItemView>): ItemView => ({
    envelope: envelope({ gates: ['k'] }),
    status: 'pending',
    ...over,
  })
  const how = { who: 'ada', why: 'wrong customer', keep: KEEP }

  it('cancels what waits by parking it, and what runs by marking it', () => {
    expect(verbs(act(view({}), 'cancel', how)!.effects)).toEqual(['park', 'closeGroup', 'tellGate', 'log'])
    expect(verbs(act(view({ status: 'running' }), 'cancel', how)!.effects)).toEqual(['cancel', 'log'])
  })

  it('acts only on the status it saw, and logs who and why', () => {
    const settlement = act(view({ status: 'dead' }), 'redrive', how)

    expect(settlement?.guard).toEqual({ by: 'status', id: 'i', in: ['dead'] })
    expect(verbs(settlement!.effects)).toEqual(['openGroup', 'reopen', 'log'])
    expect(settlement!.effects.at(-1)).toMatchObject({ who: 'ada', why: 'wrong customer', what: 'redrive i' })
  })

  it('has nothing to do where the action makes no sense', () => {
    expect(act(view({ status: 'success' }), 'cancel', how)).toBeUndefined()
    expect(act(view({ status: 'pending' }), 'redrive', how)).toBeUndefined()
    expect(act(view({ status: 'running' }), 'discard', how)).toBeUndefined()
    expect(act(view({ status: 'dead' }), 'runNow', how)).toBeUndefined()
    expect(verbs(act(view({ status: 'dead' }), 'discard', how)!.effects)).toEqual(['erase', 'log'])
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

  it('takes three crashes, and no fewer, for the doing of the item itself', () => {
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

describe('closedAlone', () => {
  const settlement = (...effects: readonly Effect[]): Settlement => ({ guard: { by: 'none' }, effects })
  const finish: Effect = { do: 'finish', id: 'a', ending: 'done', keepMs: 1 }
  const head = envelope({ id: 'a', groupId: 'g' })

  it('knows the group and the value of a root that ended and queued nothing', () => {
    const said: Effect = { do: 'contribute', groupId: 'g', value: '7', final: false }
    expect(closedAlone(head, settlement(said, finish))).toEqual({
      groupId: 'g',
      value: '7',
      watched: true,
      isFolded: false,
    })
    expect(closedAlone(head, settlement(finish))).toEqual({ groupId: 'g', watched: true, isFolded: false })
  })

  it('says when the value was folded, and hence may have been folded on itself', () => {
    const said: Effect = { do: 'contribute', groupId: 'g', value: '[7,7]', final: false, expect: 1 }
    expect(closedAlone(head, settlement(said, finish))).toMatchObject({ isFolded: true })
  })

  it('knows nothing where others are or may be in the group, or where nothing has ended', () => {
    const push: Effect = { do: 'push', item: envelope({ id: 'b', groupId: 'g' }), queue: 'default', delayMs: 0 }
    const again: Effect = { do: 'retryAt', id: 'a', attempt: 2, delayMs: 1, why: 'retry' }
    expect(closedAlone(head, settlement(push, finish))).toBeUndefined()
    expect(closedAlone({ ...head, parent: 'p' }, settlement(finish))).toBeUndefined()
    expect(closedAlone(head, settlement(again))).toBeUndefined()
  })
})

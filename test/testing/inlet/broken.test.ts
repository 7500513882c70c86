import { describe, expect, it } from 'vitest'
import { ack } from '../../../src/core/stream/result.js'
import { MemInlet } from '../../../src/source/inlets/memory/mem-inlet.js'
import type { Inlet, Subscription } from '../../../src/source/inlets/subscription.js'
import type { TestRunner } from '../../../src/testing/conformance/runner.js'
import { describeInlet, type InletClauseName } from '../../../src/testing/inlet-conformance.js'
import { collect, failedClauses } from '../../mutants/collect.js'

type Spoil = (sub: Subscription, inlet: MemInlet) => Partial<Subscription>

const spoilt = (spoil: Spoil) => (test: TestRunner) =>
  describeInlet({
    name: 'broken',
    test,
    without: ['starter'],
    open: ({ clock, leaseMs }) => {
      const inner = new MemInlet({ clock, leaseMs, batched: true })
      const inlet: Inlet = {
        capabilities: inner.capabilities,
        close: () => inner.close(),
        subscribe: async (config, options) => {
          const sub = await inner.subscribe(config, options)
          const whole: Subscription = {
            next: (o) => sub.next(o),
            settle: (m, r, o) => sub.settle(m, r, o),
            close: () => sub.close(),
            capability: (name) => sub.capability(name),
          }
          return { ...whole, ...spoil(sub, inner) }
        },
      }
      return { inlet, publish: (...values) => void inner.queue(...values.map((value) => ({ value }))) }
    },
  })

let counted = 0

const never = { signal: new AbortController().signal }

describe('an inlet that breaks its obligations', () => {
  it('is none when it is whole', async () => {
    expect(failedClauses(await collect(spoilt(() => ({}))))).toEqual([])
  })

  it.each<[string, InletClauseName, Spoil]>([
    [
      'forgets to ack',
      'inlet: ack ends a message',
      (sub) => ({ settle: async (m, r, o) => (r.action === 'ack' ? undefined : sub.settle(m, r, o)) }),
    ],
    [
      'drops what is nakked',
      'inlet: nak brings a message back',
      (sub) => ({ settle: (m, r, o) => sub.settle(m, r.action === 'nak' ? ack() : r, o) }),
    ],
    [
      'ignores the delay of a nak',
      'inlet: keeps a delayed nak back',
      (sub) => ({ settle: (m, r, o) => sub.settle(m, r.action === 'nak' ? { ...r, requeueMs: 0 } : r, o) }),
    ],
    [
      'counts its cursors instead of storing them',
      'inlet: names its messages',
      (sub) => ({
        next: async (o) => {
          const message = await sub.next(o)
          counted += 1
          const cursor = String(counted)
          Object.defineProperty(message, 'cursor', { value: { toString: () => cursor } })
          return message
        },
      }),
    ],
    [
      'hides the delivery count',
      'inlet: counts deliveries',
      (sub) => ({
        next: async (o) => {
          const message = await sub.next(o)
          return Object.defineProperty(message, 'deliveryCount', { value: 1 })
        },
      }),
    ],
    [
      'takes a message after an abort',
      'inlet: an abort before next takes nothing',
      (sub) => ({
        next: async ({ signal }) => {
          const message = await sub.next(never)
          signal.throwIfAborted()
          return message
        },
      }),
    ],
    [
      'lets a message be settled twice',
      'inlet: refuses to settle a delivery twice',
      (sub) => ({ settle: (m, r, o) => sub.settle(m, r, o).catch(() => undefined) }),
    ],
    [
      'settles what belongs to others',
      'inlet: refuses a message of another inlet',
      (sub) => ({ settle: (m, r, o) => sub.settle(m, r, o).catch(() => undefined) }),
    ],
    [
      'reads manual as an ack',
      'inlet: manual does nothing',
      (sub) => ({ settle: (m, r, o) => sub.settle(m, r.action === 'manual' ? ack() : r, o) }),
    ],
    [
      'counts a release as a delivery',
      'inlet: gives a message back without counting',
      (sub) => ({
        capability: (name) =>
          name === 'releaser'
            ? ({
                release: (m: Parameters<Subscription['settle']>[0]) =>
                  sub.settle(m, { action: 'nak', class: 'retryable', requeueMs: 0 }, never),
              } as never)
            : sub.capability(name),
      }),
    ],
    [
      'extends nothing',
      'inlet: does not bring back what is extended',
      (sub) => ({
        capability: (name) =>
          name === 'leaseExtender'
            ? ({ ...sub.capability('leaseExtender'), extend: async () => true } as never)
            : sub.capability(name),
      }),
    ],
    [
      'throws away what is queued when it is closed',
      'inlet: delivers what is left after close, then is drained',
      (sub) => ({
        close: async () => {
          await sub
            .capability('seekable')
            ?.seekToEnd()
            .catch(() => undefined)
          await sub.close()
        },
      }),
    ],
    [
      'claims what it does not have',
      'inlet: has exactly the capabilities that it claims',
      (sub) => ({ capability: (name) => (name === 'releaser' ? undefined : sub.capability(name)) }),
    ],
    [
      'seeks to the cursor instead of behind it',
      'inlet: seeks behind a cursor',
      (sub) => ({
        capability: (name) =>
          name === 'seekable'
            ? ({
                ...sub.capability('seekable'),
                seekToCursor: () => sub.capability('seekable')!.seekToStart(),
              } as never)
            : sub.capability(name),
      }),
    ],
  ])(
    'is found out when it %s',
    async (_what, clause, spoil) => {
      const report = await collect(spoilt(spoil), (name) => name === clause)
      expect(failedClauses(report)).toEqual([clause])
      expect(report.failed[0]?.error).toMatchObject({ code: 'CLAUSE_BROKEN' })
    },
    60_000,
  )

  it('cannot hide behind a waiver that is misspelt, or has no reason', () => {
    const suite = {
      name: 'x',
      test: { describe: () => undefined, it: Object.assign(() => undefined, { skip: () => undefined }) },
    }
    const open = () => ({ inlet: new MemInlet(), publish: () => undefined })
    const waived = { 'inlet: ack ends': 'no' } as never
    expect(() => describeInlet({ ...suite, open, waived })).toThrow('is not a clause of describeInlet()')
    expect(() => describeInlet({ ...suite, open, waived: { 'inlet: ack ends a message': ' ' } })).toThrow(
      'needs a reason',
    )
  })
})

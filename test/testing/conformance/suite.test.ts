import { describe, expect, it } from 'vitest'
import { memoryBackend, memoryQueue, memoryStore } from '../../../src/backends/memory/index.js'
import type { Clock } from '../../../src/core/time/clock.js'
import type { Backend } from '../../../src/ports/ports.js'
import { CAPABILITIES, type Capability } from '../../../src/testing/conformance/capability.js'
import { conformanceClauses } from '../../../src/testing/conformance/clauses.js'
import { describeBackend } from '../../../src/testing/conformance/describe-backend.js'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { describeQueue, describeStore } from '../../../src/testing/conformance/describe-ports.js'
import type { TestRunner } from '../../../src/testing/conformance/runner.js'
import { collect, failedClauses } from '../../mutants/collect.js'

const nothing: TestRunner = { describe: () => undefined, it: Object.assign(() => undefined, { skip: () => undefined }) }
const open = (clock: Clock) => memoryStore({ clock })

describe('a waiver', () => {
  it('of a clause is a visible skip that gives the reason', async () => {
    const waived = { 'store: delete removes the key': 'the server keeps everything' } as const
    const report = await collect((test) => describeStore({ name: 'mine', test, open, waived }))
    expect(report.skipped).toEqual(['store: delete removes the key (waived: the server keeps everything)'])
    expect(report.passed).not.toContain('store: delete removes the key')
    expect(failedClauses(report)).toEqual([])
  })

  it('of an unknown clause throws and suggests the closest one', () => {
    const waived = { 'store: delete remove the keys': 'because' } as Record<string, string>
    expect(() => describeStore({ name: 'mine', test: nothing, open, waived })).toThrow(
      expect.objectContaining({
        code: 'UNKNOWN_CLAUSE',
        message: expect.stringContaining('Closest: "store: delete removes the key"'),
      }),
    )
  })

  it('of a clause of another suite throws, but not where that suite is a part', () => {
    const waived = { 'queue: pops at most max bodies': 'because' } as const
    const elsewhere = { name: 'mine', test: nothing, open, waived: waived as Record<string, string> }
    expect(() => describeStore(elsewhere)).toThrow(/is not a clause of describeStore/)
    expect(() => describeBackend({ name: 'mine', test: nothing, open: () => memoryBackend(), waived })).not.toThrow()
  })

  it('without a reason throws', () => {
    const waived = { 'store: delete removes the key': ' ' }
    expect(() => describeStore({ name: 'mine', test: nothing, open, waived })).toThrow(/needs a reason/)
  })

  it('is checked by the compiler too', () => {
    const typo = { 'store: delte removes the key': 'because' }
    // @ts-expect-error: the list of clauses is closed
    expect(() => describeStore({ name: 'mine', test: nothing, open, waived: typo })).toThrow()
  })
})

describe('a capability that is not there', () => {
  it('skips the clauses that need it, visibly', async () => {
    const { push, pop, heartbeat, ack, fail } = memoryQueue()
    const without = ['size', 'deadLetter', 'pushMany', 'ackMany', 'heartbeatMany'] as const
    const report = await collect((test) =>
      describeQueue({ name: 'mine', test, without, open: () => ({ push, pop, heartbeat, ack, fail }) }),
    )
    expect(report.skipped).toContain('queue: size follows what is in the queue (without size)')
    expect(report.skipped).toHaveLength(5)
  })

  it('that does not exist throws', () => {
    const without = ['sizes'] as unknown as ['size']
    expect(() => describeQueue({ name: 'mine', test: nothing, without, open: () => memoryQueue() })).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_CAPABILITY', message: expect.stringContaining('Closest: "size"') }),
    )
  })

  it('is missed when it was not announced, and noticed when it is there after all', async () => {
    const clause = 'backend: has exactly the capabilities it is said to have'
    const run = (without: readonly Capability[], open: (clock: Clock) => Backend) =>
      collect(
        (test) => describeBackend({ name: 'mine', test, open, without }),
        (name) => name === clause,
      )
    const plain = await run(['native ledger'], (clock) => ({ ...memoryBackend({ clock }) }))
    expect(plain.failed[0]?.error.message).toContain('"named queues" is there (if it is meant to be absent, add it')
    const rich = await run(['inspect'], (clock) => memoryBackend({ clock }))
    expect(rich.failed[0]?.error.message).toContain('"inspect" is absent, as `without` says (it is there: take it off')
    expect((await run([], (clock) => memoryBackend({ clock }))).passed).toEqual([clause])
  })

  it('of a ledger says what to provide when a clause needs it', async () => {
    const ledger = { ...(await import('../../model/model-ledger.js')).modelLedger(Date.now) }
    const report = await collect((test) =>
      describeLedger({ name: 'mine', test, open: () => ({ ledger, queue: 'default' }) }),
    )
    const needy = report.failed.find(({ clause }) => clause === 'ledger: a hand-written envelope runs')
    expect(needy?.error.message).toContain('open() returned no `pushRaw`')
    expect(needy?.error.message).toContain("without: ['foreign bodies']")
  })
})

describe('a runner', () => {
  it('is found among the globals when the suite is described', () => {
    const names: string[] = []
    const it = Object.assign((name: string) => void names.push(name), { skip: () => undefined })
    Object.assign(globalThis, { describe: (_: string, body: () => void) => body(), it })
    try {
      describeStore({ name: 'mine', open })
    } finally {
      Reflect.deleteProperty(globalThis, 'describe')
      Reflect.deleteProperty(globalThis, 'it')
    }
    expect(names).toContain('store: delete removes the key')
  })

  it('that is nowhere to be found is asked for', () => {
    expect(() => describeStore({ name: 'mine', open })).toThrow(
      expect.objectContaining({ code: 'NO_TEST_RUNNER', message: expect.stringContaining('test: { describe, it }') }),
    )
  })
})

describe('the list of clauses', () => {
  const clauses = conformanceClauses()

  it('names each clause once, with its obligation and what it needs', () => {
    expect(new Set(clauses.map(({ name }) => name)).size).toBe(clauses.length)
    for (const { name, about, law, needs } of clauses) {
      expect(name.startsWith(`${about}: `)).toBe(true)
      expect(law.length).toBeGreaterThan(20)
      for (const capability of needs) expect(CAPABILITIES).toHaveProperty([capability])
    }
  })

  it('asks for every capability that can be named', () => {
    const needed = new Set(clauses.flatMap(({ needs }) => needs))
    expect(Object.keys(CAPABILITIES).filter((name) => !needed.has(name as keyof typeof CAPABILITIES))).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { brokenLimits } from './limits.js'
import type { LoadReport } from './report.js'
import { type LoadBackend, loadOf } from './scenarios.js'

const load = loadOf('drain', 1, { items: 100 })
const sound: LoadReport = {
  expected: 100,
  done: 100,
  doneStored: 100,
  dead: {},
  deadStored: 0,
  secondRuns: 0,
  lapses: 0,
  stale: 0,
  errors: {},
  stallMs: 20,
  delayMs: 900,
  liveMb: 40,
  heapMb: 60,
  rssMb: 150,
  held: 64,
  running: 32,
  ms: 1_000,
  perSecond: 100,
  facts: { sigtermMs: 3, stopMs: 10 },
  broken: [],
}

describe('the limits of a run under load', () => {
  it.each(['memory', 'sqlite', 'postgres', 'redis'] as const)('are kept by a sound run on %s', (backend) => {
    expect(brokenLimits(sound, backend, load)).toEqual([])
  })

  it.each<[string, Partial<LoadReport>]>([
    ['40 of 100 items did not end', { done: 60, doneStored: 60 }],
    ['2 items ended dead {"crashed":2}', { done: 98, doneStored: 98, dead: { crashed: 2 }, deadStored: 2 }],
    // Another process may have dead-lettered them.
    ['2 items ended dead {}', { deadStored: 2 }],
    ['100 items were settled as success, and the backend has 99', { doneStored: 99 }],
    ['100 items were settled as success, and the backend has 101', { doneStored: 101 }],
    ['1 second runs', { secondRuns: 1 }],
    ['1 leases lapsed', { lapses: 1 }],
    ['1 outcomes came too late', { stale: 1 }],
    ['3 calls of onError {"commit BUFFER_FULL":3}', { errors: { 'commit BUFFER_FULL': 3 } }],
    ['the event loop stalled for 251 ms, limit 250', { stallMs: 251 }],
    ['of the heap were alive: 257 MB, limit 256', { liveMb: 257 }],
    ['items held at the same time: 5001, limit 5000', { held: 5_001 }],
    ['SIGTERM was handled after 1001 ms, limit 1000', { facts: { sigtermMs: 1_001 } }],
    ['stop() took 6501 ms, limit 6500', { facts: { stopMs: 6_501 } }],
    ['a promise of the scenario', { broken: ['a promise of the scenario'] }],
  ])('are broken: %s', (fault, seen) => {
    expect(brokenLimits({ ...sound, ...seen }, 'postgres', load)).toEqual([fault])
  })

  it('let memory forget what has ended, and let it keep its items in the heap', () => {
    const onMemory = (seen: Partial<LoadReport>, items = load.items) =>
      brokenLimits({ ...sound, ...seen }, 'memory', { ...load, items })

    expect(onMemory({ doneStored: 10 })).toEqual([])
    expect(onMemory({ doneStored: 101 })).toHaveLength(1)
    expect(onMemory({ liveMb: 498 }, 100_000)).toEqual([])
    expect(onMemory({ liveMb: 508 }, 100_000)).toHaveLength(1)
    expect(onMemory({ liveMb: 508 }, 0)).toEqual([])
    expect(onMemory({ liveMb: 518 }, 0)).toHaveLength(1)
    const results = loadOf('results', 1)
    expect(brokenLimits({ ...sound, liveMb: 583 }, 'memory', results)).toEqual([])
    expect(brokenLimits({ ...sound, liveMb: 590 }, 'memory', results)).toHaveLength(1)
  })

  it('grow with what the caller keeps of each item', () => {
    const heap = (heapBytes: number) =>
      brokenLimits({ ...sound, liveMb: 300 }, 'redis', { ...load, items: 100_000, heapBytes })

    expect(heap(0)).toHaveLength(1)
    expect(heap(1_000)).toEqual([])
  })

  it('do not count what an unlimited doer runs as held', () => {
    const held = (backend: LoadBackend, isUnlimited: boolean) =>
      brokenLimits({ ...sound, held: 41_000, running: 40_000 }, backend, { ...load, isUnlimited })

    expect(held('redis', true)).toEqual([])
    expect(held('redis', false)).toHaveLength(1)
  })
})

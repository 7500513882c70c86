import { describe, expect, it } from 'vitest'
import { createWork, dependency, memoryBackend } from '../../src/index.js'
import { ownedBy } from '../../src/ports/find-ledger.js'
import type { ChaosReport } from './chaos.js'
import { check, hasDrained } from './check.js'
import { brokenIn, tableOf } from './table.js'
import { type Disturbance, Timeline } from './timeline.js'
import { type Accepted, type Truth, truthOf } from './truth.js'
import { workTypes } from './work-types.mjs'

const LEASE_MS = 1_000
type Line = Record<string, unknown>

/** A day's work without any trouble, and what was written down about it. */
async function quietDay() {
  const lines: Line[] = []
  const types = workTypes(async (line) => void lines.push({ by: 'worker-0', ...line }))
  const backend = memoryBackend()
  const w = createWork({ backend, work: Object.values(types), retry: { base: 1 } })
  const gate = dependency({
    on: ['leaf', 'poison'],
    queue: { ...types.gated(null), id: 'gate/opened' },
    config: 'all-done',
  })
  const works = {
    leaf: types.leaf({ n: 3, flaky: true, poison: false }),
    poison: types.leaf({ n: 4, flaky: false, poison: true }),
    fan: types.fan({ id: 'fan', n: 5, parts: 4 }),
    mint: types.mint({ parts: 2, flaky: true, ms: 0 }),
    coin: types.coin(0),
    gate,
  }
  const waits = [
    ['leaf', 'result'],
    ['poison', 'result'],
    ['fan', 'group'],
    ['mint', 'group'],
    ['gate', 'group'],
  ] as const
  const handles = Object.fromEntries(Object.entries(works).map(([id, work]) => [id, w.enqueue({ ...work, id })]))
  for (const [id, what] of waits) {
    lines.push({ is: 'waits', id, what })
    const outcome = await handles[id]![what]().then(
      (value) => ({ value }),
      (error) => ({ died: error.name }),
    )
    lines.push({ is: 'outcome', id, what, ...outcome })
  }
  await handles['coin']!.result()
  await w.stop()
  const accepted: Accepted[] = [
    { id: 'leaf', kind: 'leaf', result: 6 },
    { id: 'poison', kind: 'poison' },
    { id: 'fan', kind: 'fan', n: 5, parts: 4 },
    { id: 'mint', kind: 'mint', parts: 2 },
    { id: 'coin', kind: 'coin' },
    { id: 'gate', kind: 'gate' },
  ]
  lines.push(...accepted.map((one) => ({ is: 'accepted', ...one })))
  return { backend, lines }
}

/** Played once: the checker only reads. */
let day: ReturnType<typeof quietDay> | undefined

/** What the checker says about that day, if these lines were written, too, or instead, and these things were done. */
async function judged({
  more = [],
  change = (lines) => lines,
  done = [],
}: {
  more?: readonly Line[]
  change?: (lines: Line[]) => Line[]
  done?: readonly Disturbance[]
} = {}) {
  day ??= quietDay()
  const { backend, lines } = await day
  const truth: Truth = truthOf([...change(lines), ...more])
  const timeline = new Timeline()
  for (const one of done) timeline.add(one)
  const verdict = await check(backend, truth, timeline, LEASE_MS)
  const report: ChaosReport = {
    ...verdict,
    accepted: truth.accepted.length,
    unsure: 0,
    lostAsPromised: 0,
    faults: { kills: 0, restarts: 0, crashers: 0, sigstop: 0, cuts: 0, replies: 0, locks: 0, clock: 0, disk: 0 },
    longWriteLocks: 0,
    serverStalls: 0,
    drainMs: 0,
    badExits: [],
    endedUnasked: [],
  }
  return { verdict, broken: brokenIn(report), table: tableOf(report), isDrained: await hasDrained(backend, truth) }
}

const accepted = (one: Accepted): Line => ({ is: 'accepted', ...one })
const run = (by: string, fence: number, from: number, to?: number, id = 'x'): Line[] => [
  { is: 'start', by, id, fence, attempt: 1, at: from },
  ...(to === undefined ? [] : [{ is: 'end', by, id, fence, at: to }]),
]

describe('the checker of chaos', () => {
  it('finds nothing where nothing is wrong', async () => {
    const { verdict, broken, table, isDrained } = await judged()

    expect(broken).toEqual([])
    expect(isDrained).toBe(true)
    expect(verdict).toMatchObject({ succeeded: 10, deadLettered: 1, groups: 3, gates: 1, waits: 5, repeatedRuns: 0 })
    expect(verdict.refusedRuns).toBe(1)
    expect(table).toMatch(/^ {2}accepted +6$/m)
  })

  it.each([
    ['an item that was lost', { id: 'gone', kind: 'leaf', result: 1 }, 'gone: unknown'],
    ['a result that is not the one', { id: 'leaf', kind: 'leaf', result: 7 }, 'leaf: 6 instead of 7'],
    [
      'a death that should have been a success',
      { id: 'poison', kind: 'leaf', result: 8 },
      'poison: aborted, poison instead of 8',
    ],
    [
      'a group that counted too much',
      { id: 'fan', kind: 'fan', n: 5, parts: 3 },
      'group of fan: open 0, value 20 instead of 15',
    ],
    ['a child that is missing', { id: 'fan', kind: 'fan', n: 5, parts: 5 }, 'fan/4: unknown'],
    ['a gate that did not open', { id: 'leaf', kind: 'gate' }, 'leaf/opened: unknown'],
    [
      'work that should have been dead-lettered as crashed',
      { id: 'leaf', kind: 'crasher' },
      'leaf: 6 instead of crashed, poison',
    ],
    ['a result that no run had', { id: 'leaf', kind: 'coin' }, 'leaf: 0 of 0 runs took effect'],
  ] as const)('finds %s', async (_, claimed, text) => {
    const { broken, isDrained } = await judged({ more: [accepted(claimed)] })

    expect(broken.join('\n')).toContain(text)
    expect(isDrained).toBe(!text.endsWith('unknown'))
  })

  it('says what a gate that did not open waits for', async () => {
    const { broken } = await judged({ more: [accepted({ id: 'gone', kind: 'gate', on: ['leaf', 'fan/9'] })] })

    expect(broken.join('\n')).toContain('gone: unknown, on leaf (completed) fan/9 (unknown)')
  })

  it('finds children of two runs', async () => {
    const { broken } = await judged({
      more: [{ is: 'minted', id: 'mint', fence: 9, token: 'other', children: ['leaf'] }],
    })

    expect(broken).toEqual([expect.stringContaining('mint: 2 of 3 runs took effect')])
  })

  it('finds half of a run, and a result of one run with children of another', async () => {
    const { broken } = await judged({
      change: (lines) =>
        lines.map((line) =>
          line['is'] === 'minted'
            ? { ...line, token: 'other', children: [...(line['children'] as string[]), 'gone'] }
            : line,
        ),
    })

    expect(broken.join('\n')).toContain('gone of mint: missing')
    expect(broken.join('\n')).toContain('group of mint: ')
  })

  it('finds what was rolled back and is there', async () => {
    const { broken } = await judged({
      more: [
        { is: 'undone', id: 'gate' },
        { is: 'undone', id: 'gone' },
      ],
    })

    expect(broken).toEqual(['2 rolled back, and there all the same: gate; gate/opened'])
  })

  it('finds a wait that never ended, and one that got another outcome', async () => {
    const { broken } = await judged({
      more: [
        { is: 'waits', id: 'coin', what: 'result' },
        { is: 'outcome', id: 'leaf', what: 'result', value: 7 },
        { is: 'outcome', id: 'fan', what: 'group', died: 'WAIT_TIMEOUT' },
      ],
    })

    expect(broken).toEqual([
      '1 waits never ended: result of coin',
      '2 waits got another outcome than what is stored: result of leaf: got value 7, stored value 6; ' +
        'group of fan: got dead: WAIT_TIMEOUT, stored value 20',
    ])
  })

  it('finds work that took more than five processes along', async () => {
    const crashes = (id: string, n: number): Line[] => Array.from({ length: n }, () => ({ is: 'crash', id }))

    expect((await judged({ more: [...crashes('a', 5), ...crashes('b', 6)] })).broken).toEqual([
      '1 took too many processes along: b: 6 processes',
    ])
  })

  it('does not take a run in which nothing was accepted for a success', async () => {
    const { broken } = await judged({
      change: (lines) => lines.filter(({ is }) => is !== 'accepted' && is !== 'outcome' && is !== 'waits'),
    })

    expect(broken).toEqual(['nothing was accepted: nothing was tested'])
  })
})

describe('two runs of one item', () => {
  const stop = (who: string, from: number, to: number): Disturbance => ({ who, kind: 'stop', from, to })
  const death = (who: string, at: number): Disturbance => ({ who, kind: 'death', from: at, to: at })

  it('may follow each other only if something was done to the process of the first', async () => {
    const more = [...run('a', 1, 10_000, 10_100), ...run('b', 2, 12_000, 12_100)]

    expect((await judged({ more })).verdict.baseless).toHaveLength(1)
    expect((await judged({ more, done: [stop('c', 10_050, 11_500)] })).verdict.baseless).toHaveLength(1)
    expect((await judged({ more, done: [stop('a', 10_050, 11_500)] })).broken).toEqual([])
    expect((await judged({ more, done: [death('a', 10_110)] })).broken).toEqual([])
  })

  it('may follow each other as two attempts', async () => {
    const [first, second] = [run('a', 1, 10_000, 10_100), run('b', 2, 12_000, 12_100)]

    expect((await judged({ more: [...first, ...second.map((line) => ({ ...line, attempt: 2 }))] })).broken).toEqual([])
  })

  it('may be alive at the same time only if something was done to one of the processes', async () => {
    const more = [...run('a', 1, 10_000, 14_000), ...run('b', 2, 12_000, 12_100)]

    expect((await judged({ more })).verdict.overlaps).toHaveLength(1)
    // Too early, and too late.
    expect((await judged({ more, done: [stop('a', 7_000, 8_000)] })).verdict.overlaps).toHaveLength(1)
    expect((await judged({ more, done: [stop('a', 12_500, 13_000)] })).verdict.overlaps).toHaveLength(1)
    expect((await judged({ more, done: [stop('a', 10_500, 11_900)] })).verdict).toMatchObject({
      overlaps: [],
      excusedOverlaps: 1,
    })
    expect((await judged({ more, done: [{ kind: 'restart', from: 10_500, to: 10_600 }] })).verdict.overlaps).toEqual([])
  })

  it('are not alive at the same time when the process of the first is dead', async () => {
    const more = [...run('a', 1, 10_000), ...run('b', 2, 12_000, 12_100)]

    expect((await judged({ more, done: [death('a', 11_000)] })).verdict).toMatchObject({
      overlaps: [],
      excusedOverlaps: 0,
    })
    expect((await judged({ more, done: [death('a', 13_000)] })).verdict.overlaps).toHaveLength(1)
  })

  it('are excused by a lock on their own row, and by no other', async () => {
    const more = [...run('a', 1, 10_000, 14_000), ...run('b', 2, 12_000, 12_100)]
    const lockOf = (id: string): Line => ({ is: 'locked', ids: [id], from: 10_500, to: 11_900 })

    expect((await judged({ more: [...more, lockOf('y')] })).verdict.overlaps).toHaveLength(1)
    expect((await judged({ more: [...more, lockOf('x')] })).verdict.overlaps).toEqual([])
  })

  it('never have the same lease', async () => {
    const more = [...run('a', 1, 10_000, 10_100), ...run('b', 1, 12_000, 12_100)]

    expect((await judged({ more, done: [death('a', 10_110)] })).broken).toEqual([
      '1 leases held twice: x under fence 1',
    ])
  })
})

describe('an item that was dead-lettered as crashed and is harmless', () => {
  /** Its row says so; and these were its runs. */
  async function crashed(runs: readonly Line[], done: readonly Disturbance[]) {
    const backend = memoryBackend()
    const owned = ownedBy(backend, [])
    if (!('open' in owned)) throw new Error('a backend of our own has a ledger')
    const ledger = owned.open({ prefix: 'work:' })
    const time = { queueAt: 0, startAt: 0 }
    const item = { id: 'x', type: 'leaf', groupId: 'x', input: '{}', attempt: 1, priority: 0, ...time }
    const ends = { ending: 'crashed', class: 'poison', error: 'crashed 3 times', keepMs: 1_000_000 } as const
    await ledger.commit([
      {
        guard: { by: 'absent', id: 'x' },
        effects: [{ do: 'enqueue', item, queue: 'default', delayMs: 0 }],
      },
      { guard: { by: 'status', id: 'x', in: ['pending'] }, effects: [{ do: 'deadLetter', id: 'x', ...ends }] },
    ])
    const lines = [accepted({ id: 'x', kind: 'leaf', result: 2 }), ...runs]
    const timeline = new Timeline()
    for (const one of done) timeline.add(one)
    return check(backend, truthOf(lines), timeline, LEASE_MS)
  }
  const killed = (by: string, from: number) => ({
    runs: run(by, from, from),
    done: { who: by, kind: 'death' as const, from: from + 10, to: from + 10 },
  })

  it('is complained of unless three of its runs were interrupted', async () => {
    const [a, b, c] = [killed('a', 1_000), killed('b', 5_000), killed('c', 9_000)]

    const twice = await crashed([...a.runs, ...b.runs], [a.done, b.done])
    expect(twice.falselyCrashed).toEqual(['x: crashed 3 times, and 2 of its runs were interrupted'])
    expect(twice.wrong).toEqual([])
    const thrice = await crashed([...a.runs, ...b.runs, ...c.runs], [a.done, b.done, c.done])
    expect(thrice).toMatchObject({ falselyCrashed: [], unlucky: 1 })
  })

  it('is complained of when its runs had ended before their process died', async () => {
    const runs = [...run('a', 1, 1_000, 1_005), ...run('b', 2, 5_000, 5_005), ...run('c', 3, 9_000, 9_005)]
    const done = ['a', 'b', 'c'].map((who, i) => ({
      who,
      kind: 'death' as const,
      from: 1_010 + i * 4_000,
      to: 1_010 + i * 4_000,
    }))

    expect((await crashed(runs, done)).falselyCrashed).toHaveLength(1)
  })
})

describe('the health of the processes', () => {
  const vitals = (by: string, errors: Record<string, number>, heapBytes = 1e7, at = 1_000): Line => ({
    is: 'vitals',
    by,
    at,
    heapBytes,
    errors,
  })

  it('has a bound for the heap', async () => {
    const { broken, verdict } = await judged({
      more: [vitals('a', {}, 2e8), vitals('a', {}, 1e7), vitals('b', {}, 1e8)],
    })

    expect(broken).toEqual(['1 processes with too large a heap: a: 191 MB'])
    expect(verdict.peakHeapBytes).toBe(2e8)
  })

  it('has a bound for the calls of onError, by what was done to the process while it lived', async () => {
    const more = [vitals('a', {}), vitals('a', { FULL: 30, LOST: 5 }, 1e7, 9_000), vitals('b', { FULL: 10 })]

    const flood = await judged({ more, done: [{ who: 'a', kind: 'cut', from: 20_000, to: 20_000 }] })
    expect(flood.broken).toEqual(['1 processes called onError too often: a: 35 calls, 1 faults'])
    expect(flood.verdict.errors).toEqual({ FULL: 40, LOST: 5 })
    expect((await judged({ more, done: [{ who: 'a', kind: 'cut', from: 2_000, to: 2_000 }] })).broken).toEqual([])
  })

  it('distinguishes a process that kept its event loop busy from one that was kept waiting', async () => {
    const stall = (by: string, cpuMs: number): Line => ({ is: 'stall', by, from: 1_000, to: 4_000, cpuMs })

    const { broken, verdict } = await judged({ more: [stall('a', 10), stall('b', 2_900)] })
    expect(broken).toEqual(['1 processes kept their event loop to themselves: b: 2900 ms'])
    expect(verdict.longestStallMs).toBe(3_000)
  })
})

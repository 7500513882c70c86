import { describe, expect, it } from 'vitest'
import { createWork, defineWork } from '../../src/index.js'
import type { CommitResult, GroupValue } from '../../src/ports/settlement.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { AppendQueue } from '../../src/work/settle/append-queue.js'
import { faultyBackend } from '../simulation/faulty-backend.js'
import { until } from './support.js'

const APPLIED: CommitResult = { kind: 'applied', closed: [] }
const at = (version: number, value = `v${version}`): GroupValue => ({ value, final: false, version })
const said = (expected: number) => [{ value: `v${expected + 1}`, final: false, ifVersion: expected }]

function folds(isCounted: boolean, stored: () => GroupValue | undefined | Error = () => undefined) {
  const errors: unknown[] = []
  let reads = 0
  const own = new AppendQueue({
    isCounted,
    read: async () => {
      reads += 1
      const found = stored()
      if (found instanceof Error) throw found
      return found
    },
    onError: (error) => errors.push(error),
    clock: new FakeClock(),
    timeoutMs: 1_000,
  })
  return { folds: own, errors, reads: () => reads }
}

describe('folds of one group', () => {
  it('take turns, each on what the one before it has made', async () => {
    const { folds: f, reads } = folds(true)
    const first = await f.begin('g', undefined)
    expect(first.on).toBeUndefined()
    const begun: (GroupValue | undefined)[] = []
    const second = f.begin('g', undefined).then((fold) => {
      begun.push(fold.on)
      return fold
    })
    await Promise.resolve()
    expect(begun).toEqual([])
    first.answered(said(0), APPLIED)
    ;(await second).answered(said(1), APPLIED)

    expect(begun).toEqual([at(1)])
    expect((await f.begin('g', at(1))).on).toEqual(at(2))
    expect(reads()).toBe(0)
  })

  it('do not wait for those of another group', async () => {
    const { folds: f } = folds(true)
    await f.begin('g', undefined)

    expect((await f.begin('h', at(7))).on).toEqual(at(7))
  })

  it('fold on the value that their run has read where that is newer', async () => {
    const { folds: f } = folds(true)
    ;(await f.begin('g', undefined)).answered(said(0), APPLIED)

    expect((await f.begin('g', at(5))).on).toEqual(at(5))
  })

  it.each<[string, CommitResult | undefined]>([
    ['a conflict', { kind: 'conflict', groupId: 'g', now: at(9) }],
    ['a stale lease', { kind: 'stale' }],
    ['no answer at all', undefined],
  ])('forget what they knew after %s, and never fold on a value that may not be there', async (_, result) => {
    const { folds: f } = folds(true)
    ;(await f.begin('g', undefined)).answered(said(0), APPLIED)
    ;(await f.begin('g', undefined)).answered(said(1), result)

    expect((await f.begin('g', at(1))).on).toEqual(at(1))
  })

  it('read the value each time where a contribution does not raise its version by one', async () => {
    const { folds: f, reads } = folds(false, () => at(4))
    ;(await f.begin('g', undefined)).answered(said(4), APPLIED)
    expect((await f.begin('g', undefined)).on).toEqual(at(4))

    expect(reads()).toBe(2)
  })

  it('go on when the value cannot be read, and report that', async () => {
    const { folds: f, errors } = folds(false, () => new Error('the store is down'))

    expect((await f.begin('g', at(2))).on).toEqual(at(2))
    expect(await f.value('g')).toBeUndefined()
    expect(errors.map(String)).toEqual(['Error: the store is down', 'Error: the store is down'])
  })

  it('remember a thousand groups, and forget the oldest', async () => {
    const { folds: f, reads } = folds(true, () => at(0))
    for (let n = 0; n <= 1_000; n += 1) (await f.begin(`g${n}`, undefined)).answered(said(0), APPLIED)

    expect(await f.value('g1000')).toEqual(at(1))
    expect(reads()).toBe(0)
    expect(await f.value('g0')).toEqual(at(0))
    expect(reads()).toBe(1)
  })
})

describe('a thousand that fold into one group', () => {
  // W13
  it('settle once each: no contribution is folded against its neighbours and sent again', async () => {
    const clock = new FakeClock()
    const sent = { contributions: 0, conflicts: 0, commits: 0 }
    const backend = faultyBackend((ledger) => ({
      commit: async (settlements) => {
        const results = await ledger.commit(settlements)
        const folded = results.filter((_, n) => settlements[n]!.effects.some((effect) => effect.do === 'setGroupValue'))
        sent.commits += 1
        sent.contributions += folded.length
        sent.conflicts += folded.filter(({ kind }) => kind === 'conflict').length
        return results
      },
    }))(clock)
    const item = defineWork('item', (_: null, ctx) =>
      ctx.result(1, { append: (sum: number | undefined) => (sum ?? 0) + 1 }),
    )
    const root = defineWork('root', (_: null, ctx) => ctx.queue(Array.from({ length: 1_000 }, () => item(null))))
    const w = createWork({ backend, clock, work: [item, root], random: () => 0 })

    expect(await until(clock, w.enqueue(root(null)))).toBe(1_000)
    // One each, and a few where another was faster. Sent all at once they would be half a million.
    expect(sent.contributions).toBeGreaterThanOrEqual(1_000)
    expect(sent.contributions).toBeLessThanOrEqual(1_010)
    expect(sent.conflicts).toBeLessThanOrEqual(10)
    expect(sent.commits).toBeLessThanOrEqual(1_020)
    await until(clock, w.stop())
  })
})

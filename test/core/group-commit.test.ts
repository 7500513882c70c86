import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BufferFullError, GroupCommit } from '../../src/core/group-commit.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

/** A flush whose replies the test gives by hand. */
function byHand() {
  const batches: number[][] = []
  const replies: { answer(): void; reject(error: unknown): void }[] = []
  const flush = (batch: readonly number[]) => {
    batches.push([...batch])
    return new Promise<readonly number[]>((resolve, reject) => {
      replies.push({ answer: () => resolve(batch.map((n) => n * 10)), reject })
    })
  }
  return { batches, replies, flush }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

describe('items added while nothing is under way', () => {
  it('leave together at the end of the turn: 100 concurrent adds are exactly one flush', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush })
    const results = Promise.all(upTo(100).map((n) => commits.add(n)))
    expect(batches).toEqual([])
    expect(commits.unsent).toBe(100)
    await turn()
    expect(batches).toEqual([upTo(100)])
    expect(commits.unsent).toBe(0)
    replies[0]!.answer()
    expect(await results).toEqual(upTo(100).map((n) => n * 10))
    await turn()
    expect(batches).toHaveLength(1)
  })

  it('leave without a timer or a turn of the event loop', async () => {
    const { batches, flush } = byHand()
    const commits = new GroupCommit({ flush })
    void commits.add(1)
    await Promise.resolve()
    expect(batches).toEqual([[1]])
  })

  it('are answered by a flush that answers synchronously', async () => {
    const commits = new GroupCommit<number, number>({ flush: (batch) => batch.map((n) => n + 1) })
    expect(await Promise.all([commits.add(1), commits.add(2), commits.addMany([3, 4])])).toEqual([2, 3, [4, 5]])
  })
})

describe('items added while a flush is under way', () => {
  it('all go in one second flush when the reply has come, and not before', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush })
    const first = commits.add(0)
    await turn()
    const rest = upTo(50).map((n) => commits.add(n + 1))
    await turn()
    expect(batches).toHaveLength(1)
    replies[0]!.answer()
    expect(await first).toBe(0)
    await turn()
    expect(batches).toHaveLength(2)
    expect(batches[1]).toEqual(upTo(50).map((n) => n + 1))
    replies[1]!.answer()
    await Promise.all(rest)
  })

  it('travel with what the answered callers add next', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush })
    const again = upTo(3).map(async (n) => {
      await commits.add(n)
      return commits.add(n + 10)
    })
    await turn()
    const late = commits.add(99)
    replies[0]!.answer()
    await turn()
    expect(batches[1]?.toSorted((a, b) => a - b)).toEqual([10, 11, 12, 99])
    replies[1]!.answer()
    await Promise.all([...again, late])
  })
})

describe('more than one batch under way', () => {
  it('leaves at the end of each turn when nothing limits it, whatever earlier ones do', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush, maxUnderWay: Infinity })
    const first = [commits.add(1), commits.add(2)]
    await turn()
    const second = commits.add(3)
    await turn()
    expect(batches).toEqual([[1, 2], [3]])
    replies[1]!.answer()
    expect(await second).toBe(30)
    const idle = commits.idle()
    replies[0]!.answer()
    await Promise.all([...first, idle])
  })

  it('is limited to as many as it says', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush, maxUnderWay: 2, maxBatch: 1 })
    const all = Promise.all(upTo(4).map((n) => commits.add(n)))
    await turn()
    expect(batches).toEqual([[0], [1]])
    replies[1]!.answer()
    await turn()
    expect(batches).toEqual([[0], [1], [2]])
    replies[0]!.answer()
    await turn()
    replies[2]!.answer()
    replies[3]!.answer()
    expect(await all).toEqual([0, 10, 20, 30])
  })
})

describe('a flush that fails', () => {
  it('rejects its own items only', async () => {
    const { replies, flush } = byHand()
    const commits = new GroupCommit({ flush })
    const doomed = [commits.add(1), commits.add(2)]
    const outcomes = Promise.allSettled(doomed)
    await turn()
    const next = commits.add(3)
    replies[0]!.reject(new Error('server gone'))
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: { message: 'server gone' } },
      { status: 'rejected', reason: { message: 'server gone' } },
    ])
    await turn()
    replies[1]!.answer()
    expect(await next).toBe(30)
  })

  it('may throw synchronously, which counts as a rejection', async () => {
    let calls = 0
    const commits = new GroupCommit<number, number>({
      flush: (batch) => {
        calls += 1
        if (calls === 1) throw new Error('sync')
        return batch
      },
    })
    await expect(commits.add(1)).rejects.toThrow('sync')
    expect(await commits.add(2)).toBe(2)
  })

  it('rejects with what is wrong when its results do not align', async () => {
    const commits = new GroupCommit<number, number>({ flush: () => [1] })
    const outcomes = await Promise.allSettled([commits.add(1), commits.add(2)])
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'BAD_FLUSH', facts: { got: 1, wanted: 2 } } },
      { status: 'rejected', reason: { code: 'BAD_FLUSH' } },
    ])
  })
})

describe('a flush that is not answered in time', () => {
  it('rejects its own items as of unknown outcome, lets the next leave, and its late answer is ignored', async () => {
    const clock = new FakeClock()
    const replies: ((results: string[]) => void)[] = []
    const commits = new GroupCommit<string, string>({
      flush: () => new Promise((resolve) => replies.push(resolve)),
      timeout: { ms: 5_000, clock },
    })
    const hung = commits.add('a').catch((error: unknown) => error)
    await clock.settle()
    const next = commits.add('b')
    await clock.advance(4_999)
    expect(replies.length).toBe(1)
    await clock.advance(1)
    expect(await hung).toMatchObject({ code: 'OUTCOME_UNKNOWN', facts: { afterMs: 5_000 } })
    expect(replies.length).toBe(2)

    replies[0]!(['late'])
    await clock.settle()
    const third = commits.add('c')
    await clock.settle()
    // The late reply made no room: the second batch is still the one under way.
    expect(replies.length).toBe(2)
    replies[1]!(['B'])
    expect(await next).toBe('B')
    await clock.settle()
    replies[2]!(['C'])
    expect(await third).toBe('C')
    expect(clock.pending).toBe(0)
  })

  it('refuses a timeout that is not above 0', () => {
    const timeout = { ms: 0, clock: new FakeClock() }
    expect(() => new GroupCommit<string, string>({ flush: () => [], timeout })).toThrow('timeout.ms')
  })
})

describe('a buffer that is full', () => {
  it('refuses what comes beyond maxUnsent with BUFFER_FULL, and takes more once it was sent', async () => {
    const { replies, flush } = byHand()
    const commits = new GroupCommit({ flush, maxUnsent: 3 })
    const first = commits.add(0)
    await turn()
    const waiting = [commits.add(1), commits.add(2), commits.add(3)]
    const refused = await commits.add(4).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BufferFullError)
    expect(refused).toMatchObject({ code: 'BUFFER_FULL', facts: { limit: 'maxUnsent', most: 3, waiting: 3, added: 1 } })
    expect((refused as Error).message).toMatch(/accepted before adding more.*raise maxUnsent/s)
    replies[0]!.answer()
    await first
    await turn()
    const next = commits.add(5)
    replies[1]!.answer()
    expect(await Promise.all(waiting)).toEqual([10, 20, 30])
    await turn()
    replies[2]!.answer()
    expect(await next).toBe(50)
  })

  it('counts bytes where sizes are known, and frees them when they are sent', async () => {
    const { batches, replies, flush } = byHand()
    const commits = new GroupCommit({ flush, maxUnsentBytes: 100, maxBatch: 2, sizeOf: (n) => n })
    const sent = [commits.add(60), commits.add(40)]
    await expect(commits.add(1)).rejects.toMatchObject({ code: 'BUFFER_FULL', facts: { limit: 'maxUnsentBytes' } })
    await turn()
    const waiting = [commits.add(50), commits.add(30), commits.add(20)]
    replies[0]!.answer()
    await turn()
    expect(batches[1]).toEqual([50, 30])
    const more = commits.add(80)
    await expect(commits.add(1)).rejects.toMatchObject({ code: 'BUFFER_FULL' })
    replies[1]!.answer()
    await turn()
    replies[2]!.answer()
    await Promise.all([...sent, ...waiting, more])
  })

  it('still sends one item that is larger than the whole buffer', async () => {
    const commits = new GroupCommit<number, number>({ flush: (batch) => batch, maxUnsentBytes: 10, sizeOf: (n) => n })
    expect(await commits.add(1000)).toBe(1000)
  })

  it('refuses a list that does not fit as a whole', async () => {
    const commits = new GroupCommit<number, number>({ flush: (batch) => batch, maxUnsent: 5 })
    await expect(commits.addMany(upTo(6))).rejects.toMatchObject({ code: 'BUFFER_FULL' })
    expect(commits.unsent).toBe(0)
    expect(await commits.addMany(upTo(5))).toEqual(upTo(5))
  })

  it('takes no limit that makes no sense', () => {
    const flush = (batch: readonly number[]) => batch
    for (const bad of [0, -1, 1.5, Number.NaN]) {
      expect(() => new GroupCommit({ flush, maxUnsent: bad })).toThrow(/maxUnsent must be an integer/)
      expect(() => new GroupCommit({ flush, maxBatch: bad })).toThrow(/maxBatch must be an integer/)
      expect(() => new GroupCommit({ flush, maxUnderWay: bad })).toThrow(
        expect.objectContaining({ code: 'BAD_OPTION', option: 'GroupCommit.maxUnderWay' }),
      )
    }
  })
})

describe('shutdown', () => {
  it('waits until nothing is unsent or under way', async () => {
    const { replies, flush } = byHand()
    const commits = new GroupCommit({ flush })
    await commits.idle()
    void commits.add(1)
    let isIdle = false
    const idle = commits.idle().then(() => {
      isIdle = true
    })
    await turn()
    void commits.add(2)
    replies[0]!.answer()
    await turn()
    expect(isIdle).toBe(false)
    replies[1]!.answer()
    await idle
    expect(commits.unsent).toBe(0)
  })
})

describe('any interleaving of adds, lists, replies and failures', () => {
  it('gives each item its own outcome, never sends one twice, and keeps to maxBatch and order', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ kind: fc.constant('list' as const), count: fc.integer({ min: 0, max: 9 }) }),
      fc.record({ kind: fc.constant('reply' as const), ok: fc.boolean() }),
      fc.record({ kind: fc.constant('turn' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.integer({ min: 1, max: 8 }), async (steps, maxBatch) => {
        const { batches, replies, flush } = byHand()
        const failed = new Set<number>()
        const commits = new GroupCommit({ flush, maxBatch })
        const outcomes: Promise<void>[] = []
        let next = 0
        let answered = 0
        const expectOne = (n: number, got: Promise<number>) =>
          outcomes.push(
            got.then(
              (value) => expect([value, failed.has(n)]).toEqual([n * 10, false]),
              () => expect(failed.has(n)).toBe(true),
            ),
          )
        const reply = (ok: boolean) => {
          const at = answered
          const waiting = replies[at]
          if (waiting === undefined) return
          answered += 1
          if (ok) waiting.answer()
          else {
            for (const n of batches[at]!) failed.add(n)
            waiting.reject(new Error('no'))
          }
        }
        for (const one of steps) {
          if (one.kind === 'add') for (let i = 0; i < one.count; i += 1, next += 1) expectOne(next, commits.add(next))
          else if (one.kind === 'list') {
            const items = Array.from({ length: one.count }, (_, i) => next + i)
            next += one.count
            const got = commits.addMany(items)
            outcomes.push(
              got.then(
                (values) => expect(values).toEqual(items.map((n) => n * 10)),
                () => expect(items.some((n) => failed.has(n))).toBe(true),
              ),
            )
          } else if (one.kind === 'reply') reply(one.ok)
          else await Promise.resolve()
        }
        const idle = commits.idle()
        for (
          let i = 0;
          i < 200 && answered < replies.length + 1 && commits.unsent + replies.length > answered;
          i += 1
        ) {
          await new Promise<void>((resolve) => queueMicrotask(resolve))
          await Promise.resolve()
          reply(true)
        }
        await idle
        await Promise.all(outcomes)
        expect(batches.flat()).toEqual(upTo(next))
        expect(Math.max(0, ...batches.map((batch) => batch.length))).toBeLessThanOrEqual(maxBatch)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('batches that may be applied twice', () => {
  /** A flush that fails for what `isBad` says, with everything that travels beside it. */
  function failing(isBad: (n: number) => boolean, options: { readonly maxUnderWay?: number } = {}) {
    const clock = new FakeClock()
    const calls: number[][] = []
    const reports: number[] = []
    const commits = new GroupCommit<number, number>({
      ...options,
      flush: async (batch) => {
        calls.push([...batch])
        if (batch.some(isBad)) throw new Error('no')
        return batch
      },
      repeat: { clock, delayMs: () => 100, failed: (_, failures) => reports.push(failures) },
    })
    return { clock, calls, reports, commits }
  }

  it('are sent again as they were, and nothing else meanwhile', async () => {
    let isAway = true
    const { clock, calls, commits } = failing(() => isAway)
    const first = Promise.all(upTo(3).map((n) => commits.add(n)))
    await clock.advance(50)
    const later = commits.add(3)
    await clock.advance(100)
    expect(calls).toEqual([upTo(3), upTo(3)])
    isAway = false
    await clock.advance(100)
    expect(await first).toEqual(upTo(3))
    expect(await later).toBe(3)
    await commits.idle()
  })

  it('go on in halves where they keep failing, so that one item holds up no other forever', async () => {
    const { clock, calls, commits } = failing((n) => n === 3)
    const done: number[] = []
    for (const n of upTo(8)) void commits.add(n).then((value) => done.push(value))
    await clock.advance(1_000)
    void commits.add(8).then((value) => done.push(value))
    await clock.advance(1_000)
    expect(done.toSorted()).toEqual([0, 1, 2, 4, 5, 6, 7, 8])
    // By itself by now, and no more often than its delay says.
    const before = calls.length
    await clock.advance(1_000)
    expect(calls.slice(before)).toEqual(Array.from({ length: 10 }, () => [3]))
  })

  it('stay together while nothing gets through: a backend that was away is asked little, and caught up with soon', async () => {
    let isAway = true
    const clock = new FakeClock()
    const sizes: number[] = []
    let calls = 0
    const commits = new GroupCommit<number, number>({
      maxBatch: 1_000,
      maxUnderWay: 2,
      maxUnsent: Infinity,
      flush: async (batch) => {
        calls += 1
        if (isAway) throw new Error('away')
        sizes.push(batch.length)
        await clock.sleep(100)
        return batch
      },
      repeat: { clock, delayMs: (failures) => Math.min(5_000, 100 * 2 ** failures), failed: () => undefined },
    })
    const all = Promise.all(upTo(2_000).map((n) => commits.add(n)))
    let isIdle = false
    void commits.idle().then(() => {
      isIdle = true
    })
    await clock.advance(120_000)
    expect(isIdle).toBe(false)
    expect(calls).toBeLessThan(100)
    isAway = false
    await clock.advance(6_000)
    expect(await all).toEqual(upTo(2_000))
    expect(sizes.length).toBeLessThan(10)
    expect(isIdle).toBe(true)
  })

  it('keep their delay where many may be under way at the same time', async () => {
    const { clock, calls, commits } = failing(() => true, { maxUnderWay: 100 })
    for (const n of upTo(10)) {
      void commits.add(n)
      await clock.advance(5)
    }
    expect(calls).toEqual(upTo(10).map((n) => [n]))
  })
})

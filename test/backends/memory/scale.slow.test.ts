import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { memoryBackend, memoryQueue } from '../../../src/backends/memory/index.js'
import { ownedBy } from '../../../src/ports/find-ledger.js'
import type { ClaimedItem, Envelope } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Settlement } from '../../../src/ports/settlement.js'

/** CPU time, because the machine is shared; the best of a few, because collection of garbage is not what is asked. */
async function cpuMs(act: () => unknown, times = 3): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let time = 0; time < times; time += 1) {
    const began = process.cpuUsage()
    await act()
    const { user, system } = process.cpuUsage(began)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}

describe('a file queue that grows', () => {
  // S14 W15
  it('takes twice as many pushes in about twice the time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-scale-'))
    let files = 0
    const push = (count: number) => () => {
      files += 1
      const queue = memoryQueue({ file: join(folder, `q${files}`) })
      const body = 'x'.repeat(300)
      for (let n = 0; n < count; n += 1) queue.push(body)
    }
    try {
      await cpuMs(push(2_000), 1)
      const few = await cpuMs(push(10_000))
      const many = await cpuMs(push(20_000))
      expect(many / few).toBeLessThanOrEqual(3)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('a queue that is long', () => {
  const popAndAck = (count: number) => () => {
    const queue = memoryQueue()
    for (let n = 0; n < count; n += 1) queue.push(String(n))
    const pulled = queue.pop(count, 60_000)
    for (const one of pulled.toReversed()) queue.ack(one)
    expect(queue.size()).toBe(0)
  }

  // S16 W15
  it('acks 40 000 leases in reverse order within a second, and eight times as many in about eight times the time', async () => {
    await cpuMs(popAndAck(5_000), 3)
    const few = await cpuMs(popAndAck(10_000))
    expect(await cpuMs(popAndAck(40_000), 1)).toBeLessThan(1_000)
    const many = await cpuMs(popAndAck(80_000))
    // What scans for each ack takes 64 times as long.
    expect(many / few).toBeLessThanOrEqual(40)
  })

  it('is as fast again when it is short again', async () => {
    const cycle = (queue: ReturnType<typeof memoryQueue>) => () => {
      for (let n = 0; n < 20_000; n += 1) {
        queue.push('x')
        queue.ack(queue.pop(1, 1_000)[0]!)
      }
    }
    const fresh = memoryQueue()
    const old = memoryQueue()
    for (let n = 0; n < 300_000; n += 1) old.push('x', { priority: n % 5, delay: n % 3 })
    for (const one of old.pop(300_000, 60_000)) old.ack(one)
    while (old.size() > 0) for (const one of old.pop(1_000, 60_000)) old.ack(one)
    await cpuMs(cycle(fresh), 2)
    // In turns: what else the machine does meanwhile slows down both.
    let [before, after] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let round = 0; round < 5; round += 1) {
      before = Math.min(before, await cpuMs(cycle(fresh), 1))
      after = Math.min(after, await cpuMs(cycle(old), 1))
    }
    expect(after / before).toBeLessThanOrEqual(2)
  })
})

describe('a ledger that is long', () => {
  const envelope = (n: number): Envelope => ({
    id: `i${n}`,
    type: 't',
    groupId: `g${n}`,
    input: 'null',
    queueAt: 0,
    startAt: 0,
    attempt: 1,
    priority: 0,
  })
  const pushed = (n: number): Settlement => {
    const item = envelope(n)
    return {
      guard: { by: 'absent', id: item.id },
      effects: [
        { do: 'joinGroup', groupId: item.groupId, count: 1 },
        { do: 'enqueue', item, queue: 'default', delayMs: 0 },
      ],
    }
  }
  const finished = ({ lease, envelope: { id, groupId } }: ClaimedItem, result = '1'): Settlement => ({
    guard: { by: 'lease', lease },
    effects: [
      { do: 'recordAttempt', id, was: { attempt: 1, startedAt: 0, endedAt: 1, worker: 'w' } },
      { do: 'setGroupValue', groupId, value: '1', final: false },
      { do: 'complete', id, ending: 'completed', keepMs: 60_000, result },
      { do: 'leaveGroup', groupId, count: 1 },
    ],
  })

  const BATCH = 500
  const batches = <T>(all: readonly T[]): readonly (readonly T[])[] =>
    Array.from({ length: Math.ceil(all.length / BATCH) }, (_, n) => all.slice(n * BATCH, (n + 1) * BATCH))

  const opened = (): Ledger => {
    const owned = ownedBy(memoryBackend(), [])
    if (!('open' in owned)) throw new Error('no native ledger')
    return owned.open({ prefix: 'work:' })
  }

  /**
   * In so many ledgers at the same time everything is enqueued, then everything is claimed, then everything is settled, the last
   * first; all in batches. Returns the CPU time that the ledgers took for it: not
   * the time that making the settlements took.
   */
  async function drain(ledgers: number, count: number): Promise<number> {
    const all = Array.from({ length: ledgers }, () => ({ ledger: opened(), held: [] as ClaimedItem[] }))
    let spent = 0
    const timed = async <T>(call: () => Promise<T>): Promise<T> => {
      const began = process.cpuUsage()
      const answer = await call()
      const { user, system } = process.cpuUsage(began)
      spent += (user + system) / 1000
      return answer
    }
    for (const { ledger } of all) {
      for (let from = 0; from < count; from += BATCH) {
        const batch = Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => pushed(from + n))
        await timed(() => ledger.commit(batch))
      }
    }
    const ask = { queues: [{ queue: 'default', max: BATCH }], leaseMs: 600_000, worker: 'w' }
    for (const { ledger, held } of all) {
      while (held.length < count) {
        const { items } = await timed(() => ledger.claim(ask))
        if (items.length === 0) break
        held.push(...items)
      }
      expect(held.length).toBe(count)
    }
    for (const { ledger, held } of all) {
      for (const some of batches(held.reverse())) {
        const batch = some.map((one) => finished(one))
        await timed(() => ledger.commit(batch))
      }
      expect(ledger.openCount?.()).toBe(0)
    }
    return spent
  }

  it('stays small in the heap however much has ended: 150 000 results of 1 kB', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const ledger = opened()
    const before = heap()
    const ask = { queues: [{ queue: 'default', max: BATCH }], leaseMs: 60_000, worker: 'w' }
    for (let from = 0; from < 150_000; from += BATCH) {
      await ledger.commit(Array.from({ length: BATCH }, (_, n) => pushed(from + n)))
      const { items } = await ledger.claim(ask)
      await ledger.commit(items.map((one) => finished(one, String(from).padStart(1_000, 'x'))))
    }
    // With all of them in the heap it is more than 290 MB.
    expect((heap() - before) / 1_000_000).toBeLessThan(200)
    expect(ledger.openCount?.()).toBe(0)
  })

  it('spends at most twice as long on each of 100 000 items as on each of 1 000', async () => {
    // The thousands are alive side by side, so that the garbage collector has as much to do for them: its work depends on
    // what is alive in the process, not on how long one ledger is, and would drown the difference that is asked for.
    const thousands = () => drain(100, 1_000)
    const hundredThousand = () => drain(1, 100_000)
    await thousands()
    await hundredThousand()
    // In turns, because the machine is not equally fast all the time; the middle one, because a single round may be odd.
    const ratios: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const few = await thousands()
      ratios.push((await hundredThousand()) / few)
    }
    const [, , median] = ratios.toSorted((a, b) => a - b)
    expect(median, `the middle one of ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`).toBeLessThanOrEqual(2)
  })
})

import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import type { ItemQuery } from '../../../src/ports/inspect.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, deadLetter, enqueue, envelope, finish } from '../native.js'

function opened() {
  const clock = new FakeClock()
  return { clock, ledger: ledgerOn(memoryBackend({ clock })) }
}

async function page(ledger: Ledger, query: Partial<ItemQuery>) {
  const { items, next } = await ledger.inspect!.list({ limit: 100, ...query })
  return { ids: items.map(({ envelope: { id } }) => id), next }
}

describe('a list', () => {
  it('shows the newest first, page by page, while items come and go', async () => {
    const { ledger } = opened()
    await ledger.commit(Array.from({ length: 10 }, (_, n) => enqueue(envelope(`i${n}`))))
    const first = await page(ledger, { state: 'waiting', limit: 4 })
    expect(first.ids).toEqual(['i9', 'i8', 'i7', 'i6'])
    await ledger.commit([enqueue(envelope('new'))])
    await claim(ledger, 2)
    const second = await page(ledger, { state: 'waiting', limit: 4, cursor: first.next! })
    expect(second).toEqual({ ids: ['i5', 'i4', 'i3', 'i2'], next: undefined })
    expect((await page(ledger, { state: 'active' })).ids).toEqual(['i1', 'i0'])
  })

  it('merges queues and types in one order', async () => {
    const { ledger } = opened()
    await ledger.commit([
      enqueue(envelope('a', { type: 'x' })),
      enqueue(envelope('b', { type: 'y' }), { queue: 'bulk' }),
      enqueue(envelope('c', { type: 'x' }), { queue: 'bulk' }),
      enqueue(envelope('d', { type: 'y' })),
    ])
    expect((await page(ledger, {})).ids).toEqual(['d', 'c', 'b', 'a'])
    expect((await page(ledger, { type: 'x' })).ids).toEqual(['c', 'a'])
    expect((await page(ledger, { queue: 'bulk' })).ids).toEqual(['c', 'b'])
    expect((await page(ledger, { queue: 'bulk', type: 'x', limit: 1 })).ids).toEqual(['c'])
  })

  it('reads a bounded page when a filter has no index, and says where to continue', async () => {
    const { ledger } = opened()
    for (let from = 0; from < 3000; from += 500) {
      await ledger.commit(
        Array.from({ length: 500 }, (_, n) =>
          enqueue(envelope(`i${from + n}`, { groupId: from + n === 5 ? 'rare' : 'g' })),
        ),
      )
    }
    const seen: string[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const { ids, next } = await page(ledger, { groupId: 'rare', ...(cursor === undefined ? {} : { cursor }) })
      seen.push(...ids)
      cursor = next
      pages += 1
    } while (cursor !== undefined)
    expect([seen, pages]).toEqual([['i5'], 3])
  })

  it('finds failures by class and fingerprint through their whole life', async () => {
    const { ledger } = opened()
    await ledger.commit(['a', 'b', 'c'].map((id) => enqueue(envelope(id, { tags: ['red', 'red'] }))))
    const [a, b, c] = await claim(ledger)
    const failed = (id: string, fingerprint: string) =>
      ({
        do: 'recordAttempt',
        id,
        was: { attempt: 1, startedAt: 1, endedAt: 2, worker: 'w', class: 'retryable', fingerprint },
      }) as const
    await ledger.commit([
      { ...deadLetter(a!), effects: [failed('a', 'f1'), ...deadLetter(a!).effects] },
      {
        guard: { by: 'lease', lease: b!.lease },
        effects: [failed('b', 'f1'), { do: 'retry', id: 'b', attempt: 2, delayMs: 1000, reason: 'retry' }],
      },
      { ...deadLetter(c!), effects: [failed('c', 'f2'), ...deadLetter(c!).effects] },
    ])
    expect((await page(ledger, { fingerprint: 'f1' })).ids).toEqual(['b', 'a'])
    expect((await page(ledger, { fingerprint: 'f1', state: 'dead' })).ids).toEqual(['a'])
    expect((await page(ledger, { class: 'retryable', state: 'dead' })).ids).toEqual(['c', 'a'])
    expect((await page(ledger, { tag: 'red', state: 'retrying' })).ids).toEqual(['b'])
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'redrive', id: 'a', delayMs: 0 }] }])
    expect((await page(ledger, { class: 'retryable' })).ids).toEqual(['c'])
    expect((await page(ledger, { fingerprint: 'f1', state: 'waiting' })).ids).toEqual(['a'])
    await ledger.commit([{ guard: { by: 'status', id: 'c', in: ['dead'] }, effects: [{ do: 'delete', id: 'c' }] }])
    expect((await page(ledger, { class: 'retryable' })).ids).toEqual([])
    expect((await page(ledger, { tag: 'red' })).ids).toEqual(['a', 'b'])
  })

  it('can be cut off at a time', async () => {
    const { ledger, clock } = opened()
    await ledger.commit([enqueue(envelope('early', { queueAt: 1 })), enqueue(envelope('late', { queueAt: 10 }))])
    expect((await page(ledger, { before: 10 })).ids).toEqual(['early'])
    const now = clock.now()
    await ledger.commit((await claim(ledger)).map((item) => finish(item)))
    expect((await page(ledger, { before: now })).ids).toEqual([])
    expect((await page(ledger, { before: now + 1 })).ids.length).toBe(2)
  })

  it('refuses a cursor that is none', async () => {
    const { ledger } = opened()
    await expect(page(ledger, { cursor: 'x' })).rejects.toThrow(/"x" is not a cursor. Pass the `next`/)
  })
})

describe('items that fall due in the same moment', () => {
  it('are promoted in steps, and a claim says that there are more', async () => {
    const { clock, ledger } = opened()
    for (let n = 0; n < 2_500; n += 500) {
      const batch = Array.from({ length: 500 }, (_, i) => enqueue(envelope(`${n + i}`), { delayMs: 1_000 }))
      await ledger.commit(batch)
    }
    await clock.advance(1_000)
    const ask = { queues: [{ queue: 'default', max: 1_200 }], leaseMs: 1000, worker: 'w' }
    const replies: [number, boolean][] = []
    for (let n = 0; n < 3; n += 1) {
      const { items, more } = await ledger.claim(ask)
      replies.push([items.length, more])
    }
    expect(replies).toEqual([
      [1_200, true],
      [1_200, true],
      [100, false],
    ])
  })
})

describe('a paused item', () => {
  it('is blocked once a claim has met it, and says by what', async () => {
    const { ledger } = opened()
    await ledger.commit([enqueue(envelope('a')), anybody({ do: 'pause', what: 'type', name: 't' })])
    expect((await page(ledger, { state: 'waiting' })).ids).toEqual(['a'])
    await claim(ledger)
    expect((await page(ledger, { state: 'blocked' })).ids).toEqual(['a'])
    expect((await ledger.read(['a']))[0]?.hold).toEqual({ by: 'pause', key: 'type:t' })
    await ledger.commit([anybody({ do: 'resume', what: 'type', name: 't' })])
    expect((await page(ledger, { state: 'waiting' })).ids).toEqual(['a'])
  })

  /** So many items that are on hold in a paused queue. */
  async function heldByPause(count: number, queue = 'default') {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const ledger = ledgerOn(backend)
    const ask = { queues: [{ queue, max: 1 }], leaseMs: 1000, worker: 'w' }
    for (let n = 0; n < count; n += 500) {
      await ledger.commit(Array.from({ length: 500 }, (_, i) => enqueue(envelope(`${n + i}`), { queue })))
    }
    await ledger.commit([anybody({ do: 'pause', what: 'queue', name: queue })])
    while ((await ledger.claim(ask)).more);
    return { backend, ledger, ask, resume: anybody({ do: 'resume', what: 'queue', name: queue }) }
  }

  it('gets its place back in steps when there are many: by the resume, and by the claims after it', async () => {
    const { ledger, resume } = await heldByPause(3_500)
    await ledger.commit([resume])
    const more: boolean[] = []
    const seen: string[] = []
    // Of another queue: it has nothing to hand out, and goes on freeing all the same.
    const elsewhere = { queues: [{ queue: 'bulk', max: 1 }], leaseMs: 1000, worker: 'w' }
    for (let n = 0; n < 3; n += 1) more.push((await ledger.claim(elsewhere)).more)
    expect(more).toEqual([true, true, false])
    while (seen.length < 3_500) seen.push(...(await claim(ledger, 500)).map(({ lease }) => lease.id))
    expect(seen).toEqual(Array.from({ length: 3_500 }, (_, n) => String(n)))
  })

  it('wakes the workers that serve its queue with every step', async () => {
    const { ledger, resume } = await heldByPause(2_500, 'bulk')
    const woken: string[] = []
    ledger.onReady?.((queue) => woken.push(queue))
    await ledger.commit([resume])
    await claim(ledger, 1)
    await claim(ledger, 1)
    await claim(ledger, 1)
    expect(woken).toEqual(['bulk', 'bulk', 'bulk'])
  })

  it('does not read as paused after the resume, however many there are', async () => {
    const { ledger, resume } = await heldByPause(2_500)
    await ledger.commit([resume])
    expect((await ledger.read(['2499']))[0]?.hold).toBeUndefined()
    expect((await page(ledger, { state: 'blocked' })).ids).toEqual([])
  })

  it('stays on hold when it is paused again before its turn has come, and is freed by the next resume', async () => {
    const { ledger, resume, ask } = await heldByPause(2_500)
    await ledger.commit([resume, anybody({ do: 'pause', what: 'queue', name: 'default' })])
    let reply = await ledger.claim(ask)
    while (reply.more) reply = await ledger.claim(ask)
    expect((await page(ledger, { state: 'waiting' })).ids).toEqual([])
    await ledger.commit([resume])
    const seen = new Set<string>()
    while (seen.size < 2_500) for (const { lease } of await claim(ledger, 500)) seen.add(lease.id)
    expect(seen.size).toBe(2_500)
  })

  it('can be many more than one claim reads', async () => {
    const { ledger } = opened()
    await ledger.commit([anybody({ do: 'pause', what: 'type', name: 't' })])
    for (let n = 0; n < 5; n += 1) {
      await ledger.commit(Array.from({ length: 500 }, (_, i) => enqueue(envelope(`${n}-${i}`))))
    }
    await ledger.commit([enqueue(envelope('other', { type: 'other' }))])
    const ask = { queues: [{ queue: 'default', max: 1 }], leaseMs: 1000, worker: 'w' }
    const seen: string[] = []
    let claims = 0
    for (let more = true; more; claims += 1) {
      const reply = await ledger.claim(ask)
      seen.push(...reply.items.map(({ lease }) => lease.id))
      more = reply.more
    }
    expect([seen, claims]).toEqual([['other'], 3])
  })
})

describe('workers', () => {
  it('are forgotten an hour after their last heartbeat', async () => {
    const { ledger, clock } = opened()
    const me = (id: string) => ({ id, host: 'h', version: '1', types: [], queues: [] })
    await ledger.extend([], 1000, me('a'))
    await clock.advance(1_800_000)
    await ledger.extend([], 1000, me('b'))
    expect((await ledger.inspect!.workers()).map(({ id }) => id)).toEqual(['a', 'b'])
    await clock.advance(1_800_000)
    expect((await ledger.inspect!.workers()).map(({ id }) => id)).toEqual(['b'])
  })
})

describe('the history of an item', () => {
  it('is bounded', async () => {
    const { ledger } = opened()
    await ledger.commit([enqueue(envelope('a'))])
    const was = (attempt: number) => ({ attempt, startedAt: 0, endedAt: 0, worker: 'w' })
    await ledger.commit([
      anybody(...Array.from({ length: 150 }, (_, n) => ({ do: 'recordAttempt', id: 'a', was: was(n) }) as const)),
    ])
    const attempts = await ledger.inspect!.attempts('a')
    expect([attempts.length, attempts[0]?.attempt, attempts.at(-1)?.attempt]).toEqual([100, 50, 149])
  })
})

import { describe, expect, it, onTestFinished } from 'vitest'
import type { ClaimReply, Ledger, Room } from '../../../src/ports/ledger.js'
import { ask, enqueue, item, times } from '../settlements.js'
import { ledgerOn, openFile } from './open-file.js'

function open(): Ledger {
  const backend = openFile()
  onTestFinished(() => backend.close())
  return ledgerOn(backend)
}

const put = (ledger: Ledger, type: string, ids: readonly string[], priority = 0) =>
  ledger.commit(ids.map((id) => enqueue(item(id, { type, priority }))))
const room = (max: number, ...types: string[]): Room => ({ types, max })
const idsOf = ({ items }: ClaimReply) => items.map(({ lease }) => lease.id)

describe('a claim with rooms on SQLite', () => {
  it('finds what it may take behind any number of items that it may not', async () => {
    const ledger = open()
    for (const step of times(5, (i) => i))
      await put(
        ledger,
        'foreign',
        times(1_000, (i) => `f${step}-${i}`),
        5,
      )
    await put(ledger, 'resize', ['a', 'b', 'c'])

    const reply = await ledger.claim(ask(2, { rooms: [room(5, 'resize'), room(0, 'foreign')] }))

    expect(idsOf(reply)).toEqual(['a', 'b'])
    expect(reply.more).toBe(true)
    const last = await ledger.claim(ask(2, { rooms: [room(5, 'resize'), room(0, 'foreign')] }))
    expect([idsOf(last), last.more]).toEqual([['c'], false])
  })

  it('goes on behind what a room that became full has left, in the order of the queue', async () => {
    const ledger = open()
    await put(
      ledger,
      'many',
      times(50, (i) => `m${i}`),
      2,
    )
    await put(ledger, 'some', ['s1', 's2', 's3'], 1)
    await put(ledger, 'few', ['x1', 'x2'])
    await put(ledger, 'some', ['s4'])

    const rooms = [room(2, 'many'), room(3, 'some', 'few')]
    expect(idsOf(await ledger.claim(ask(20, { rooms })))).toEqual(['m0', 'm1', 's1', 's2', 's3'])
    expect(idsOf(await ledger.claim(ask(20, { rooms })))).toEqual(['m2', 'm3', 'x1', 'x2', 's4'])
  })

  it('counts a room over all queues of the claim', async () => {
    const ledger = open()
    await ledger.commit([...times(3, (i) => enqueue(item(`a${i}`))), enqueue(item('b'), { queue: 'other' })])
    const from = [
      { queue: 'default', max: 2 },
      { queue: 'other', max: 2 },
    ]

    expect(idsOf(await ledger.claim(ask(0, { queues: from, rooms: [room(2, 'resize')] })))).toEqual(['a0', 'a1'])
    expect(idsOf(await ledger.claim(ask(0, { queues: from, rooms: [room(9, 'resize')] })))).toEqual(['a2', 'b'])
  })

  it('takes nothing without room, and does not ask to be made again for it', async () => {
    const ledger = open()
    await put(ledger, 'resize', ['a'])

    for (const rooms of [[], [room(0, 'resize')], [room(3, 'mail')], [room(3)]]) {
      const reply = await ledger.claim(ask(5, { rooms }))
      expect([idsOf(reply), reply.more]).toEqual([[], false])
    }
    expect(idsOf(await ledger.claim(ask(5)))).toEqual(['a'])
  })

  it('passes over paused types that have room, as without rooms', async () => {
    const ledger = open()
    await put(
      ledger,
      'paused',
      times(1_500, (i) => `p${i}`),
      5,
    )
    await put(ledger, 'resize', ['a'])
    await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'pause', what: 'type', name: 'paused' }] }])
    const rooms = [room(5, 'resize', 'paused')]

    // Bounded steps: a claim puts so many on hold at most, and says that there is more.
    const replies: ClaimReply[] = []
    do replies.push(await ledger.claim(ask(5, { rooms })))
    while (replies.at(-1)!.more && replies.length < 10)

    expect(replies.flatMap(idsOf)).toEqual(['a'])
    expect((await ledger.read(['p0', 'p1499'])).map((view) => view?.hold?.by)).toEqual(['pause', 'pause'])
  })
})

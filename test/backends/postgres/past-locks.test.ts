import { describe, expect, it } from 'vitest'
import { sendPastLocks } from '../../../src/backends/postgres/past-locks.js'
import type { CommitResult, Settlement } from '../../../src/ports/settlement.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { enqueue, item, times } from '../settlements.js'

const APPLIED: CommitResult = { kind: 'applied', closed: [] }
const idOf = ({ guard }: Settlement) => (guard.by === 'absent' ? guard.id : '')
const locked = () => Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })

/** A server on which others hold these ids; it reports which of them are rows, and waits for 250 ms before it gives up. */
function holding(held: Set<string>, { areRows = true } = {}) {
  const clock = new FakeClock()
  const sent: string[][] = []
  const written = new Set<string>()
  return {
    clock,
    sent,
    written,
    sending: {
      clock,
      async send(batch: readonly Settlement[]) {
        sent.push(batch.map(idOf))
        if (batch.some((one) => held.has(idOf(one)))) {
          await clock.sleep(250)
          throw locked()
        }
        for (const one of batch) written.add(idOf(one))
        return batch.map(() => APPLIED)
      },
      heldRows: async (batch: readonly Settlement[]) =>
        batch.map((one) => (areRows && held.has(idOf(one)) ? [idOf(one)] : [])),
      whenFree: () => clock.sleep(250),
    },
  }
}

const batchOf = (ids: readonly string[]) => ids.map((id) => enqueue(item(id)))

describe('a batch that meets a lock', () => {
  it('goes in one piece if nothing is locked', async () => {
    const { sending, sent } = holding(new Set())
    expect(await sendPastLocks(batchOf(['a', 'b']), sending)).toEqual([APPLIED, APPLIED])
    expect(sent).toEqual([['a', 'b']])
  })

  it('leaves out what needs a held row after one wait, and tries that again without locks until it is free', async () => {
    const held = new Set(['b', 'c'])
    const { sending, sent, clock } = holding(held)
    const answer = sendPastLocks(batchOf(['a', 'b', 'c', 'd']), sending)
    await clock.advance(250)
    expect(sent).toEqual([
      ['a', 'b', 'c', 'd'],
      ['a', 'd'],
    ])
    held.delete('b')
    await clock.advance(500)
    expect(sent.slice(2)).toEqual([['b']])
    held.clear()
    await clock.advance(500)
    expect(sent.slice(3)).toEqual([['c']])
    expect(await answer).toEqual(times(4, () => APPLIED))
  })

  it('fails what needs a row that is held for more than two seconds', async () => {
    const { sending, sent, clock } = holding(new Set(['b']))
    const answer = sendPastLocks(batchOf(['a', 'b']), sending)
    await clock.advance(2_300)
    expect(await answer).toMatchObject([
      APPLIED,
      { kind: 'failed', error: { code: 'POSTGRES_LOCKED', facts: { id: 'b' } } },
    ])
    expect(sent).toEqual([['a', 'b'], ['a']])
  })

  it('finds what needs something else that is held in few steps: a thousand neighbours wait for a second and a half at most', async () => {
    const ids = times(1_000, (i) => `i${i}`)
    const { sending, written, clock } = holding(new Set(['i500']), { areRows: false })
    const answer = sendPastLocks(batchOf(ids), sending)
    await clock.advance(1_500)
    expect(written.size).toBe(999)
    await clock.advance(2_000)
    const results = await answer
    expect(results.filter(({ kind }) => kind === 'applied')).toHaveLength(999)
    expect(results[500]).toMatchObject({ kind: 'failed', error: { code: 'POSTGRES_LOCKED' } })
  })

  it('fails as a whole, where the server fails in another way', async () => {
    const { sending } = holding(new Set())
    const send = () => Promise.reject(new Error('gone'))
    await expect(sendPastLocks(batchOf(['a']), { ...sending, send })).rejects.toThrow('gone')
  })
})

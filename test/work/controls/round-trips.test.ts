import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineWork, type Work } from '../../../src/index.js'
import { world } from '../support.js'
import { counted } from './tapped.js'

const plain = defineWork('plain', async (n: number, ctx) => ctx.result(n))
const controlled = defineWork('controlled', async (n, ctx) => ctx.result(n), {
  input: z.number(),
  runTimeout: 60_000,
  tags: ['a'],
  strictDeadline: true,
  timeout: 60_000,
})

/** The calls to the ledger, from the enqueue of so many items to their end. No caller waits: a waiter would poll as well. */
async function callsFor(works: readonly Work[]): Promise<Record<string, number>> {
  const { ports, calls } = counted()
  const { w, clock, events } = world('native', { work: [plain, controlled], concurrency: 100 }, ports)
  await clock.advance(20)
  calls.clear()
  for (const work of works) void w.enqueue(work)
  await clock.advance(20)
  expect(events.filter(({ kind }) => kind === 'succeeded')).toHaveLength(works.length)
  const { claim: _, ...rest } = Object.fromEntries(calls)
  return rest
}

describe('controls that are not used', () => {
  it('add no round trip to the commits of an enqueue and an end', async () => {
    const one = await callsFor([plain(1)])
    expect(one).toEqual({ commit: 2 })
    const hundred = await callsFor(Array.from({ length: 100 }, (_, n) => plain(n)))
    expect(hundred['commit']).toBeLessThanOrEqual(4)
    expect(Object.keys(hundred)).toEqual(['commit'])
  })

  it('add none when they are asked for and nothing happens: schema, limits and tags travel with the item', async () => {
    expect(await callsFor([controlled(1)])).toEqual({ commit: 2 })
  })

  it('cost a cancel one read and one commit, and its worker a heartbeat and a read', async () => {
    const { ports, calls } = counted()
    const hang = defineWork('hang', () => new Promise<never>(() => undefined))
    const { w, until, clock, events } = world('native', { work: [hang] }, ports)
    const handle = w.enqueue(hang(null))
    await clock.advance(20)
    calls.clear()
    await until(handle.cancel('why'))

    await clock.advance(20)
    expect(events.at(-2)).toMatchObject({ kind: 'cancelled', reason: 'why' })
    const { claim: _, ...rest } = Object.fromEntries(calls)
    expect(rest).toEqual({ read: 2, commit: 2, extend: 1 })
  })
})

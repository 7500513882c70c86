import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../src/index.js'
import { ledgerOn } from '../backends/ledger-on.js'
import { ask, deadLetter, enqueue, finish, item } from '../backends/settlements.js'
import { wrapLedger } from '../support/wrap-ledger.js'
import { LedgerWatch } from './ledger-watch.js'

const LEASE_MS = 1_000

async function watched() {
  const clock = new FakeClock()
  const watch = new LedgerWatch(() => undefined)
  const backend = wrapLedger(memoryBackend({ clock }), (ledger) => watch.over(ledger))
  const ledger = ledgerOn(backend)
  await ledger.commit(['a', 'b', 'c'].map((id) => enqueue(item(id))))
  const claim = async (max: number) => (await ledger.claim(ask(max, { leaseMs: LEASE_MS }))).items
  return { clock, watch, ledger, claim }
}

describe('the watch between engine and ledger', () => {
  it('counts what was claimed and is not settled', async () => {
    const { watch, ledger, claim } = await watched()
    const [first] = await claim(2)
    await ledger.commit([finish(first!)])
    await claim(2)

    expect(watch).toMatchObject({ mostHeld: 2, done: 1, lapses: 0, stale: 0 })
  })

  it('counts successes and dead items separately', async () => {
    const { watch, ledger, claim } = await watched()
    const [first, second, third] = await claim(3)
    const all = watch.reach(3, 60_000)
    await ledger.commit([finish(first!), deadLetter(second!), finish(third!)])

    expect(await all).toBe(true)
    expect(watch).toMatchObject({ mostHeld: 3, done: 2, dead: { exhausted: 1 }, ended: 3 })
  })

  it('notices a lease that ran out, and the outcome that came too late', async () => {
    const { clock, watch, ledger, claim } = await watched()
    const early = await claim(3)
    await clock.advance(LEASE_MS + 1)
    const late = await claim(3)
    await ledger.commit([finish(early[0]!)])
    await ledger.commit([finish(late[0]!)])

    expect(late).toHaveLength(3)
    expect(watch).toMatchObject({ lapses: 3, stale: 1, done: 1 })
  })

  it('counts an outcome once whose first reply was lost', async () => {
    const { watch, ledger, claim } = await watched()
    const [first] = await claim(1)
    await ledger.commit([finish(first!)])
    await ledger.commit([finish(first!)])

    expect(watch.done).toBe(1)
  })

  it('says so when not enough has ended in time', async () => {
    const { watch } = await watched()

    expect(await watch.reach(1, 1)).toBe(false)
  })
})

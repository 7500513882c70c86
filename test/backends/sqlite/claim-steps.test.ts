import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import type { Lease } from '../../../src/ports/item.js'
import { ask, enqueue, item, times } from '../settlements.js'
import { ledgerOn, temporaryFile } from './open-file.js'

const LEASE = 30_000
const WORKER = { id: 'w1', host: 'h', version: '1', types: ['resize'], queues: ['default'] }

/** A ledger whose time the test sets. */
function open() {
  const file = temporaryFile()
  const clock = { now: 1_780_000_000_000 }
  const backend = sqliteBackend({ file, now: () => clock.now })
  onTestFinished(() => backend.close())
  return { ledger: ledgerOn(backend), clock, file }
}

/** Claims of one item each, as where work comes slowly: each is a lease of its own. */
async function claimOneByOne({ ledger }: ReturnType<typeof open>, count: number, prefix: string): Promise<Lease[]> {
  const leases: Lease[] = []
  for (const i of times(count, (n) => n)) {
    await ledger.commit([enqueue(item(`${prefix}${i}`))])
    const { items } = await ledger.claim(ask(1))
    leases.push(items[0]!.lease)
  }
  return leases
}

describe('leases that have run out on SQLite', () => {
  it('all come back at the next claim, though each item had a lease of its own', async () => {
    const opened = open()
    await claimOneByOne(opened, 150, 'i')
    opened.clock.now += LEASE

    expect((await opened.ledger.claim(ask(200))).items).toHaveLength(150)
  })

  it('come back from behind any number that heartbeats keep', async () => {
    const opened = open()
    const { ledger, clock } = opened
    const kept = await claimOneByOne(opened, 150, 'kept')
    clock.now += 1
    await claimOneByOne(opened, 1, 'lost')
    clock.now += LEASE / 2
    await ledger.extend(
      kept.map((lease) => ({ lease, running: true })),
      LEASE,
      WORKER,
    )
    clock.now += LEASE / 2

    expect((await ledger.claim(ask(9))).items.map(({ lease }) => lease.id)).toEqual(['lost0'])
  })
})

describe('a claim that meets a paused type on SQLite', () => {
  it('holds back a bounded number, also where some have expired behind all others', async () => {
    const { ledger, clock, file } = open()
    await ledger.commit(times(3_000, (i) => enqueue(item(`p${i}`, { type: 'paused' }))))
    await ledger.commit(times(8, (i) => enqueue(item(`e${i}`, { type: 'paused', deadline: clock.now + 10 }))))
    await ledger.commit([
      enqueue(item('live')),
      { guard: { by: 'none' }, effects: [{ do: 'pause', what: 'type', name: 'paused' }] },
    ])
    clock.now += 100
    const db = new Database(file, { readonly: true })
    onTestFinished(() => void db.close())
    const countHeld = () => db.prepare("select count(*) from millrace_item where hold_by = 'pause'").pluck().get()
    const rooms = [{ types: ['resize', 'paused'], max: 4 }]

    const first = await ledger.claim(ask(4, { rooms }))
    expect([first.items.map(({ lease }) => lease.id), first.more, countHeld()]).toEqual([['live'], true, 1_024])
    await ledger.claim(ask(4, { rooms }))
    await ledger.claim(ask(4, { rooms }))
    expect([(await ledger.claim(ask(4, { rooms }))).more, countHeld()]).toEqual([false, 3_008])
  })

  it('does not ask to be made again for what has expired and is paused', async () => {
    const { ledger, clock } = open()
    const deadline = clock.now + 10
    await ledger.commit([
      enqueue(item('live', { deadline })),
      enqueue(item('held', { type: 'paused', deadline: deadline + 1 })),
      { guard: { by: 'none' }, effects: [{ do: 'pause', what: 'type', name: 'paused' }] },
    ])
    clock.now += 100

    const { items, more } = await ledger.claim(ask(2, { rooms: [] }))
    expect([items.map(({ lease }) => lease.id), more]).toEqual([['live'], false])
  })
})

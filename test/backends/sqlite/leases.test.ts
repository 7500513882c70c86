import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import type { SqliteBackend } from '../../../src/backends/sqlite/index.js'
import { leaseClockOf } from '../../../src/backends/sqlite/lease-clock.js'
import { systemClock } from '../../../src/core/time/clock.js'
import type { Lease } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ask, enqueue, finish, item } from '../settlements.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const HOUR = 3_600_000
const LEASE = 30_000

const opened: SqliteBackend[] = []
afterEach(async () => {
  for (const backend of opened.splice(0)) await backend.close()
})

/** Two processes on one file, and the one clock of their machine. */
function twoProcesses() {
  const clock = new FakeClock()
  const file = temporaryFile()
  const backends = [openFile({ file, clock }), openFile({ file, clock })] as const
  opened.push(...backends)
  const [here, there] = backends
  return { clock, file, here, there, ours: ledgerOn(here), theirs: ledgerOn(there) }
}

const me = { id: 'w1', host: 'h', version: '1', types: ['resize'], queues: ['default'] }
const beat = (ledger: Ledger, lease: Lease, running = true) => ledger.extend([{ lease, running }], LEASE, me)
const claimedBy = async (ledger: Ledger) => (await ledger.claim(ask(10))).items.map(({ lease }) => lease.id)
const leaseUntil = async (ledger: Ledger, id: string) => (await ledger.read([id]))[0]?.leaseUntil

/** Claims `a` with the first process, which runs it. */
async function held(ledger: Ledger): Promise<Lease> {
  await ledger.commit([enqueue(item('a'))])
  const [a] = (await ledger.claim(ask(1))).items
  await beat(ledger, a!.lease)
  return a!.lease
}

/** As if the file had last been used before the machine was started again, or on another machine. */
function pretendAnotherBoot(file: string): void {
  const db = new Database(file)
  expect(db.prepare("update millrace_setting set value = 'boot of yesterday' where name = 'boot'").run().changes).toBe(
    1,
  )
  db.close()
}

describe('a lease while the time of day is set', () => {
  for (const [way, stepMs] of [
    ['forward', HOUR],
    ['back', -HOUR],
  ] as const) {
    it(`${way} by an hour is held by heartbeats as before`, async () => {
      const { clock, ours, theirs } = twoProcesses()
      const lease = await held(ours)

      clock.jump(stepMs)
      for (let beats = 0; beats < 3; beats += 1) {
        await clock.advance(LEASE - 1)
        expect(await claimedBy(theirs)).toEqual([])
        expect(await beat(ours, lease)).toEqual(['held'])
      }
    })

    it(`${way} by an hour runs out as before when its process has died`, async () => {
      const { clock, ours, theirs } = twoProcesses()
      await held(ours)

      clock.jump(stepMs)
      await clock.advance(LEASE - 1)
      expect(await claimedBy(theirs)).toEqual([])
      await clock.advance(1)
      expect((await theirs.claim(ask(10))).items).toMatchObject([{ lease: { id: 'a' }, lapses: 1, crashes: 1 }])
    })

    it(`${way} by an hour lets what is handed back run immediately`, async () => {
      const { clock, ours, theirs } = twoProcesses()
      const lease = await held(ours)

      clock.jump(stepMs)
      await ours.commit([{ guard: { by: 'lease', lease }, effects: [{ do: 'release', id: 'a' }] }])

      expect(await claimedBy(theirs)).toEqual(['a'])
    })

    it(`${way} by an hour is shown in the new time`, async () => {
      const { clock, ours, theirs } = twoProcesses()
      await held(ours)
      await clock.advance(10_000)

      clock.jump(stepMs)

      expect(await leaseUntil(theirs, 'a')).toBe(clock.now() + LEASE - 10_000)
      const { items } = await theirs.inspect!.list({ state: 'active', limit: 5 })
      expect(items.map((view) => view.leaseUntil)).toEqual([clock.now() + LEASE - 10_000])
    })

    it(`${way} by an hour holds for a body of the plain queue, too`, async () => {
      const { clock, here, there } = twoProcesses()
      await here.queue.push('body')
      const [pulled] = await here.queue.pop(1, LEASE)
      await clock.advance(LEASE - 1)
      expect(await here.queue.heartbeat(pulled!, LEASE)).toBe(true)

      clock.jump(stepMs)
      await clock.advance(LEASE - 1)
      expect(await there.queue.pop(1, LEASE)).toEqual([])
      await clock.advance(1)
      const [again] = await there.queue.pop(1, LEASE)
      expect(again).toMatchObject({ body: 'body', attempt: 2 })
      await there.queue.fail(again!)
      expect(await here.queue.pop(1, LEASE)).toMatchObject([{ body: 'body', attempt: 3 }])
    })

    it(`${way} by an hour holds for an item that was born under a lease`, async () => {
      const { clock, ours, theirs } = twoProcesses()
      const leasedTo = { worker: 'w1', token: 'token', leaseMs: LEASE }
      const born = { do: 'enqueue', item: item('b'), queue: 'default', delayMs: 0, leasedTo } as const
      await ours.commit([{ guard: { by: 'absent', id: 'b' }, effects: [born] }])

      clock.jump(stepMs)
      await clock.advance(LEASE - 1)
      expect(await claimedBy(theirs)).toEqual([])
      await clock.advance(1)

      expect((await theirs.claim(ask(10))).items).toMatchObject([{ lease: { id: 'b' }, lapses: 1, crashes: 0 }])
    })
  }

  it('leaves due times and retention with the time of day', async () => {
    const { clock, ours } = twoProcesses()
    await ours.commit([enqueue(item('later'), { delayMs: HOUR }), enqueue(item('done'))])
    const { items, nextDueAt } = await ours.claim(ask(10))
    expect(nextDueAt).toBe(clock.now() + HOUR)
    await ours.commit(items.map((claimed) => finish(claimed)))

    clock.jump(HOUR)
    expect(await claimedBy(ours)).toEqual(['later'])
    clock.jump(24 * HOUR)
    expect(await ours.read(['done'])).toEqual([undefined])
  })
})

describe('a lease of another boot', () => {
  it('is over immediately, and a crash only of what was running', async () => {
    const { clock, file, ours, theirs } = twoProcesses()
    await ours.commit(['running', 'waiting'].map((id) => enqueue(item(id))))
    const { items } = await ours.claim(ask(2))
    await ours.extend(
      items.map(({ lease }) => ({ lease, running: lease.id === 'running' })),
      24 * HOUR,
      me,
    )

    pretendAnotherBoot(file)

    // Reading ends nothing, and shows it already.
    expect(await leaseUntil(theirs, 'running')).toBe(clock.now())
    const reply = await theirs.claim(ask(10))
    expect(reply.crashed).toEqual(['resize'])
    expect(reply.items.map(({ lease, crashes, lapses }) => [lease.id, crashes, lapses])).toEqual([
      ['running', 1, 1],
      ['waiting', 0, 1],
    ])
    expect(await ours.commit(items.map((claimed) => finish(claimed)))).toMatchObject([
      { kind: 'stale' },
      { kind: 'stale' },
    ])
  })

  it('ends once: leases given since are kept', async () => {
    const { clock, file, ours, theirs } = twoProcesses()
    await held(ours)
    pretendAnotherBoot(file)
    expect(await claimedBy(ours)).toEqual(['a'])

    expect(await claimedBy(theirs)).toEqual([])
    expect(await leaseUntil(theirs, 'a')).toBe(clock.now() + LEASE)
    await clock.advance(LEASE)
    expect(await claimedBy(theirs)).toEqual(['a'])
  })

  it('is over for a body of the plain queue, too', async () => {
    const { file, here, there } = twoProcesses()
    await here.queue.push('body')
    await here.queue.pop(1, 24 * HOUR)

    pretendAnotherBoot(file)

    expect(await there.queue.pop(1, LEASE)).toMatchObject([{ body: 'body', attempt: 2 }])
  })
})

describe('the clock of leases', () => {
  it.runIf(process.platform === 'linux')('is the time since the machine has started, and knows which start', () => {
    for (const real of [systemClock, Date.now, { ...systemClock, now: () => 5 }]) {
      const clock = leaseClockOf(real)
      expect(clock.boot).toBe(`boot ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`)
      const uptimeMs = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1_000
      // The uptime counts the time that the machine was suspended; nothing else distinguishes the two here.
      expect(clock.now()).toBeLessThanOrEqual(uptimeMs + 1_000)
      expect(clock.now()).toBeGreaterThan(performance.now())
    }
  })

  it('is the time of day where one start of the machine cannot be distinguished from another', () => {
    const before = Date.now()
    const clock = leaseClockOf(systemClock, 'aix')

    expect(clock.boot).toBe('time of day')
    expect(clock.now()).toBeGreaterThanOrEqual(before)
  })

  it('is that of the test where the test gives one', async () => {
    const clock = new FakeClock()
    const [byClock, byTime] = [leaseClockOf(clock), leaseClockOf(clock.now)]
    clock.jump(HOUR)
    await clock.advance(7)

    expect([byClock.now(), byTime.now()]).toEqual([7, clock.now()])
    expect(byClock.boot).toBe(leaseClockOf(new FakeClock()).boot)
    expect(byClock.boot).not.toBe(byTime.boot)
  })
})

import Database from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { createWork, defineWork, memoryBackend, type WorkHandle } from '../../../src/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { temporaryFile } from './open-file.js'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const mail = defineWork('mail', async (to: string, ctx) => ctx.result(`sent to ${to}`))

/** A user's program: its own tables, and a work system in the same file. */
async function program(options: { clock?: FakeClock; keepCompleted?: number; autoStart?: boolean } = {}) {
  const file = temporaryFile()
  const { clock } = options
  const backend = sqliteBackend({ file, ...(clock === undefined ? {} : { clock }) })
  const work = createWork({ backend, work: [mail] as const, ...options })
  closing.push(
    () => backend.close(),
    () => work.stop(),
  )
  await backend.migrate()
  const db = new Database(file)
  closing.push(() => void db.close())
  db.exec('create table orders (id text primary key)')
  const orders = () => db.prepare('select id from orders').pluck().all()
  return { db, work, orders, file, backend }
}

describe("work enqueued in the user's own transaction", () => {
  it('runs once the transaction has committed', async () => {
    const { db, work, orders } = await program()

    const handle = db.transaction(() => {
      db.prepare('insert into orders values (?)').run('o-1')
      return { handle: work.enqueue(mail('ada'), { tx: db }) }
    })()

    expect(await handle.handle.accepted()).toMatchObject({ kind: 'created' })
    expect(await handle.handle.result()).toBe('sent to ada')
    expect(orders()).toEqual(['o-1'])
  })

  it('comes through a connection that reads integers as bigints', async () => {
    const { db, work } = await program()
    db.defaultSafeIntegers(true)

    const handle = db.transaction(() => ({ handle: work.enqueue(mail('ada'), { tx: db }) }))()

    expect(await handle.handle.result()).toBe('sent to ada')
  })

  it('does not exist when the transaction rolls back', async () => {
    const { db, work, orders } = await program()
    const ids: string[] = []

    expect(() =>
      db.transaction(() => {
        db.prepare('insert into orders values (?)').run('o-1')
        ids.push(work.enqueue(mail('ada'), { tx: db }).id)
        throw new Error('no stock')
      })(),
    ).toThrow('no stock')

    expect(orders()).toEqual([])
    expect(await work.list()).toEqual([])
    expect(db.prepare('select count(*) from millrace_item where id = ?').pluck().get(ids[0])).toBe(0)
  })

  it('rejects a wait with NOT_STORED when the transaction was rolled back', async () => {
    const { db, work } = await program()
    const rolledBack = () => {
      const made: WorkHandle[] = []
      const order = db.transaction(() => {
        made.push(work.enqueue(mail('ada'), { tx: db }))
        throw new Error('no stock')
      })
      expect(order).toThrow('no stock')
      return made[0]!
    }
    const notStored = { code: 'NOT_STORED', message: expect.stringContaining('was rolled back') }

    const handle = rolledBack()
    await expect(handle.result()).rejects.toMatchObject(notStored)
    await expect(handle.group()).rejects.toMatchObject(notStored)
    await expect(rolledBack()).rejects.toMatchObject(notStored)
    expect(await handle.cancel()).toEqual({ kind: 'unknown' })
    expect(await handle.progress()).toBeUndefined()
    for await (const _ of handle.watchProgress()) expect.unreachable()
  })

  it('rejects a wait with RESULT_EXPIRED when it was stored, ended and was removed', async () => {
    const clock = new FakeClock()
    const { db, work, backend } = await program({ clock, keepCompleted: 1_000 })
    const expired = { code: 'RESULT_EXPIRED' }
    const committed = () => db.transaction(() => ({ handle: work.enqueue(mail('ada'), { tx: db }) }))().handle
    const until = async <T>(promise: Promise<T>): Promise<T> => {
      promise.catch(() => undefined)
      await clock.advance(10_000)
      return promise
    }
    const [seen, unseen] = [committed(), committed()]
    expect(await until(seen.result())).toBe('sent to ada')
    await clock.advance(60_000)
    // Records go when something else is written.
    await until(work.enqueue(mail('bob')).result())
    for (const handle of [seen, unseen]) await expect(until(handle.result())).rejects.toMatchObject(expired)

    // This process would have kept it for a day; the one that ran it did not.
    const producer = createWork({ backend, clock, work: [mail] as const, autoStart: false })
    const handle = db.transaction(() => ({ handle: producer.enqueue(mail('cyd'), { tx: db }) }))().handle
    await clock.advance(60_000)
    await until(work.enqueue(mail('dan')).result())
    await expect(until(handle.result())).rejects.toMatchObject(expired)
    const stopped = work.stop()
    await clock.advance(10_000)
    await stopped
  })

  it('takes the transaction down with it when it cannot be accepted', async () => {
    const { db, work, orders } = await program()

    expect(() =>
      db.transaction(() => {
        db.prepare('insert into orders values (?)').run('o-1')
        void work.enqueue(mail('x'.repeat(2_000_000)), { tx: db })
      })(),
    ).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))

    expect(orders()).toEqual([])
  })

  it('is refused outside of a transaction, on another file, and for what is no database', async () => {
    const { db, work } = await program()
    const elsewhere = new Database(temporaryFile())
    closing.push(() => void elsewhere.close())
    const bad = expect.objectContaining({ code: 'BAD_TRANSACTION' })

    expect(() => work.enqueue(mail('ada'), { tx: db })).toThrow(bad)
    expect(() => elsewhere.transaction(() => work.enqueue(mail('ada'), { tx: elsewhere }))()).toThrow(bad)
    for (const tx of ['tx', {}, 7]) expect(() => work.enqueue(mail('ada'), { tx })).toThrow(bad)
    expect(await work.list()).toEqual([])
  })

  it('is refused by a backend that shares no database, by name', () => {
    const work = createWork({ backend: memoryBackend(), work: [mail] as const, autoStart: false })

    expect(() => work.enqueue(mail('ada'), { tx: {} })).toThrow(expect.objectContaining({ code: 'NOT_SUPPORTED' }))
  })

  it('says what to do when the file has no tables yet', async () => {
    const file = temporaryFile()
    const backend = sqliteBackend({ file })
    const work = createWork({ backend, work: [mail] as const, autoStart: false })
    const db = new Database(file)
    closing.push(
      () => void db.close(),
      () => backend.close(),
    )

    const enqueue = db.transaction(() => ({ handle: work.enqueue(mail('ada'), { tx: db }) }))
    expect(enqueue).toThrow(
      expect.objectContaining({ code: 'BAD_TRANSACTION', message: expect.stringContaining('await backend.migrate()') }),
    )
    // `add` has only its promise to say so, which comes too late for the transaction.
    const added = db.transaction(() => ({ receipt: work.add(mail('ada'), { tx: db }) }))()
    await expect(added.receipt).rejects.toMatchObject({ code: 'BAD_TRANSACTION' })

    await backend.migrate()
    await expect(enqueue().handle.accepted()).resolves.toMatchObject({ kind: 'created' })
  })
})

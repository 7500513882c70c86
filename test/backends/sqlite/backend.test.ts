import Database from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { type SqliteBackend, type SqliteBackendOptions, sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ask, enqueue, finish, item, times } from '../settlements.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const opened: SqliteBackend[] = []
afterEach(async () => {
  for (const backend of opened.splice(0)) await backend.close()
})
function open(options: Partial<SqliteBackendOptions> = {}): SqliteBackend {
  const backend = openFile(options)
  opened.push(backend)
  return backend
}

const HALF = 'half \ud800'

describe('the options of the SQLite backend', () => {
  it('are refused by name when they make no sense', () => {
    const file = temporaryFile()
    const bad: readonly Record<string, unknown>[] = [
      {},
      { file: '' },
      { file: 7 },
      { file: 'a\0b' },
      { file: ':memory:' },
      { file, synchronous: 'off' },
      { file, migrate: 'yes' },
      { file, prefix: 'sqlite_x' },
      { file, prefix: 'nul \0' },
      { file, prefix: HALF },
      { file, prefix: 'x'.repeat(501) },
      { file, now: 5 },
      { file, now: Date.now, clock: new FakeClock() },
      { file, maxItemBytes: 10 },
      { file, driver: 'sqlite' },
      { file, fille: 'x' },
    ]

    for (const options of bad)
      expect(() => sqliteBackend(options as never), JSON.stringify(options)).toThrow(
        expect.objectContaining({ code: 'BAD_OPTION' }),
      )
  })

  it('open nothing before the first call', async () => {
    const backend = sqliteBackend({ file: '/dev/null/all.db' })

    await expect(backend.store.get('k')).rejects.toMatchObject({ code: 'SQLITE_OPEN' })
    await expect(backend.queue.push('b')).rejects.toMatchObject({ code: 'SQLITE_OPEN' })
    await backend.close()
  })

  it('leave the tables as they are with migrate: false', async () => {
    const file = temporaryFile()
    await expect(open({ file, migrate: false }).store.get('k')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })

    await open({ file }).store.set('k', 'v')

    expect(await open({ file, migrate: false }).store.get('k')).toBe('v')
  })

  it('keep two systems with two prefixes apart, whatever the prefixes are', async () => {
    const file = temporaryFile()
    const prefixes = ['', 'a', `it's "odd"; drop table x; --{}\n`, 'x'.repeat(500)]
    const backends = prefixes.map((prefix) => open({ file, prefix }))

    for (const [i, backend] of backends.entries()) {
      await backend.store.set('k', `${i}`)
      await ledgerOn(backend).commit([enqueue(item('same id'))])
    }

    for (const [i, backend] of backends.entries()) {
      expect(await backend.store.get('k')).toBe(`${i}`)
      expect((await ledgerOn(backend).claim(ask(5))).items).toHaveLength(1)
    }
  })

  it('refuse a prefix that differs from one in the file only in case, and leave nothing behind', async () => {
    const file = temporaryFile()
    const first = open({ file, prefix: 'Shop_' })
    await first.store.set('k', 'v')
    const second = open({ file, prefix: 'shop_' })

    await expect(second.store.set('k', 'other')).rejects.toMatchObject({
      code: 'SCHEMA_CONFLICT',
      message: expect.stringContaining('upper from lower case'),
    })
    await expect(ledgerOn(second).commit([enqueue(item('a'))])).rejects.toMatchObject({ code: 'SCHEMA_CONFLICT' })
    expect(await first.store.get('k')).toBe('v')
    expect((await ledgerOn(first).claim(ask(5))).items).toEqual([])
  })

  it('name the limit when a body is too large, and nothing is left of it', async () => {
    const backend = open({ maxItemBytes: 2_000 })

    await expect(backend.queue.push('é'.repeat(1_500))).rejects.toMatchObject({
      code: 'TOO_LARGE',
      facts: { bytes: 3_000, limit: 2_000 },
    })
    expect(await backend.queue.size()).toBe(0)
  })
})

describe('names and texts that SQLite cannot hold', () => {
  it('are kept exactly, or refused by name without the others', async () => {
    const ledger = ledgerOn(open())
    const names = ["it's", '"', '{}', 'a\nb', 'x'.repeat(500), 'nul \0 inside', '\0', HALF]

    const results = await ledger.commit(names.map((id) => enqueue(item(id, { type: id, groupId: id, tags: [id] }))))

    expect(results.map((result) => (result.kind === 'refused' ? result.code : result.kind))).toEqual([
      ...names.slice(0, -1).map(() => 'applied'),
      'BAD_NAME',
    ])
    const views = await ledger.read(names.slice(0, -1))
    expect(views.map((view) => [view?.envelope.id, view?.envelope.type, view?.envelope.tags])).toEqual(
      names.slice(0, -1).map((name) => [name, name, [name]]),
    )
    for (const name of names.slice(0, -1)) {
      const { items } = await ledger.inspect!.list({ state: 'waiting', tag: name, limit: 5 })
      expect(items.map(({ envelope }) => envelope.id)).toEqual([name])
    }
    expect(await ledger.commit([enqueue(item('a', { input: HALF }))])).toMatchObject([{ code: 'BAD_TEXT' }])
  })

  it('are refused by the plain ports before anything has changed', async () => {
    const { queue, store, pubsub, named } = open()

    await expect(queue.push(HALF)).rejects.toMatchObject({ code: 'BAD_TEXT' })
    await expect(queue.push(7 as never)).rejects.toMatchObject({ code: 'BAD_BODY' })
    await expect(store.set(HALF, 'v')).rejects.toMatchObject({ code: 'BAD_TEXT' })
    await expect(store.set('k', HALF)).rejects.toMatchObject({ code: 'BAD_TEXT' })
    await expect(store.set('k', 'v', -1)).rejects.toMatchObject({ code: 'BAD_OPTION' })
    await expect(pubsub.publish(HALF)).rejects.toMatchObject({ code: 'BAD_TEXT' })
    for (const name of ['', HALF, 7]) expect(() => named(name as string)).toThrow(/named\(queue\)/)
    expect([await queue.size(), await store.get('k')]).toEqual([0, undefined])
  })

  it('do not lose an error: what cannot be held of it is replaced', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit([enqueue(item('a'))])
    const [a] = (await ledger.claim(ask(1))).items
    const error = { do: 'deadLetter', id: 'a', ending: 'aborted', class: 'poison', error: HALF, keepMs: 1e6 } as const

    await ledger.commit([{ guard: { by: 'lease', lease: a!.lease }, effects: [error] }])

    expect((await ledger.read(['a']))[0]?.error).toBe('half \ufffd')
  })
})

describe('what has been kept long enough', () => {
  it('is really removed, with everything that belongs to it, and counted', async () => {
    const clock = new FakeClock()
    const file = temporaryFile()
    const backend = open({ file, clock })
    const ledger = ledgerOn(backend)
    await ledger.commit(
      times(1_200, (i) => enqueue(item(`i${i}`, { groupId: `g${i % 7}`, tags: ['t'], waiter: 'somebody' }))),
    )
    const { items } = await ledger.claim(ask(2_000))
    const failed = { attempt: 1, startedAt: 1, endedAt: 2, worker: 'w', error: 'Error: x', fingerprint: 'f' }
    await ledger.commit(
      items.map((claimed) => {
        const { guard, effects } = finish(claimed)
        return { guard, effects: [{ do: 'recordAttempt', id: claimed.lease.id, was: failed }, ...effects] }
      }),
    )
    await backend.store.set('short', 'v', 1_000)
    await backend.queue.push(JSON.stringify(item('pushed')), { dedupeKey: 'k' })
    await clock.advance(2 * 86_400_000)

    // Bounded steps: each write takes one.
    for (let step = 0; step < 6; step += 1) {
      await backend.store.set('tick', String(step))
      await clock.advance(1_000)
    }

    const db = new Database(file, { readonly: true })
    const tables = ['item', 'item_tag', 'attempt', 'item_group', 'watcher', 'notification']
    const rows = tables.map((name) => db.prepare(`select count(*) from millrace_${name}`).pluck().get())
    expect(Object.fromEntries(tables.map((name, i) => [name, rows[i]]))).toEqual(
      Object.fromEntries(tables.map((name) => [name, 0])),
    )
    expect(db.prepare('select key from millrace_store').pluck().all()).toEqual(['tick'])
    db.close()
    expect(backend.removed()).toMatchObject({ items: 1_200, groups: 7, keys: 1 })
    expect((await ledger.claim(ask(1))).removed).toBe(1_200)
  })
})

describe('the plain queue of the SQLite backend', () => {
  it('shows what was dead-lettered', async () => {
    const { queue, named } = open()
    await queue.deadLetter('body', 'Error: x')

    expect(await queue.dead()).toMatchObject([{ body: 'body', error: 'Error: x' }])
    expect(await named('other').dead()).toEqual([])
  })
})

describe('one file, two ways of using it', () => {
  it('refuses a plain consumer where systems work natively, and lives on', async () => {
    const native = open()
    const ledger = ledgerOn(native)
    await ledger.commit([enqueue(item('a'))])

    await expect(native.queue.pop(1, 1_000)).rejects.toMatchObject({ code: 'WRONG_MODE' })
    expect((await ledger.claim(ask(1))).items).toHaveLength(1)
  })

  it('refuses a native system where a wrapped one takes bodies, also in another process', async () => {
    const file = temporaryFile()
    const plain = open({ file })
    await plain.queue.push('a body')
    expect(await plain.queue.pop(1, 1_000)).toHaveLength(1)
    const other = ledgerOn(open({ file }))

    await expect(other.commit([enqueue(item('a'))])).rejects.toMatchObject({ code: 'WRONG_MODE' })
    await expect(other.claim(ask(1))).rejects.toMatchObject({ code: 'WRONG_MODE' })
    expect(await other.read(['a'])).toEqual([undefined])
  })
})

describe('news for other processes', () => {
  it('all arrives, however much was published together', async () => {
    const file = temporaryFile()
    const [here, there] = [open({ file }), open({ file })]
    const received = new Set<string>()
    await there.store.get('the connection is open')
    // It really waits: for the file system, or the poll, to report that the file has changed.
    await new Promise<void>((resolve) => {
      there.pubsub.subscribe((message) => {
        received.add(message)
        if (received.size === 2_500) resolve()
      })
      // Once the listener knows where the news begin.
      void there.store.get('and listens').then(async () => {
        await Promise.all(Array.from({ length: 2_500 }, (_, i) => here.pubsub.publish(`message ${i}`)))
      })
    })

    expect(received.size).toBe(2_500)
  })
})

describe('a root that is erased while it is open', () => {
  it('notifies the waiter of its group, also when it waits for the root itself', async () => {
    const ledger = ledgerOn(open())
    await ledger.commit([enqueue(item('a', { waiter: 'me' }))])
    await ledger.watch('me', { itemIds: ['a'], groupIds: [] })

    const [result] = await ledger.commit([
      {
        guard: { by: 'status', id: 'a', in: ['pending'] },
        effects: [
          { do: 'delete', id: 'a' },
          { do: 'leaveGroup', groupId: 'a', count: 1 },
        ],
      },
    ])

    expect(result).toEqual({ kind: 'applied', closed: [{ groupId: 'a', watched: true }] })
  })
})

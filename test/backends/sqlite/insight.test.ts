import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Ledger } from '../../../src/ports/ledger.js'
import { fillWithDead, QUESTIONS } from '../dead-heap.js'
import { ask, enqueue, finish, item, START } from '../settlements.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const release = (ledger: Ledger, id: string, status: 'pending' | 'running') =>
  ledger.commit([{ guard: { by: 'status', id, in: [status] }, effects: [{ do: 'release', id, delayMs: 0 }] }])

const stuckItemsOf = async (ledger: Ledger) =>
  (await ledger.inspect!.stuckItems!({ limit: 10 })).items.map(({ envelope }) => envelope.id)

describe('what people ask of a heap of dead items', () => {
  it('loads no payload, and finds its rows by indexes', async () => {
    const file = temporaryFile()
    const said: string[] = []
    let isListening = false
    const backend = openFile({
      file,
      prefix: '',
      driver: 'better-sqlite3',
      onStatement: (sql) => void (isListening && said.push(sql)),
    })
    const ledger = ledgerOn(backend)
    await fillWithDead(ledger, 300)
    isListening = true
    for (const put of Object.values(QUESTIONS)) await put(ledger)
    const queries = [{ before: START }, { class: 'poison' }, { queue: 'default' }, { groupId: 'd1' }] as const
    for (const query of queries) {
      await ledger.inspect!.count!(query)
      await ledger.inspect!.list({ ...query, limit: 10 })
    }
    await backend.close()

    const selects = said.filter((sql) => /^\s*select/i.test(sql))
    expect(selects.length).toBeGreaterThan(50)
    // Texts are quoted in the log: what is left names columns.
    const columns = selects.map((sql) => sql.replace(/'(?:[^']|'')*'/g, "''"))
    expect(columns.filter((sql) => /\binput\b|\*(?!\))|select i\.\*/.test(sql))).toEqual([])

    const db = new Database(file)
    const scans = new Set(
      selects.flatMap((sql) =>
        (db.prepare(`explain query plan ${sql}`).all() as { readonly detail: string }[])
          .map(({ detail }) => detail)
          .filter((detail) => /^SCAN (?:item|i|attempt|a|g|item_tag)\b/.test(detail)),
      ),
    )
    db.close()
    expect([...scans]).toEqual([])
  })
})

describe('an item that was lost', () => {
  it('is found, and freed by a release', async () => {
    const file = temporaryFile()
    const backend = openFile({ file, prefix: '', now: () => START })
    const ledger = ledgerOn(backend)
    await ledger.commit([
      enqueue(item('leaseless')),
      enqueue(item('dueless', { priority: -1 }), { delayMs: 60_000 }),
      enqueue(item('sound'), { delayMs: 60_000 }),
    ])
    await ledger.claim(ask(1))
    expect(await stuckItemsOf(ledger)).toEqual([])

    const db = new Database(file)
    db.exec("delete from held where seq = (select seq from item where id = 'leaseless')")
    db.exec("update item set due_at = null, wake_at = null where id = 'dueless'")
    db.close()
    expect((await stuckItemsOf(ledger)).toSorted()).toEqual(['dueless', 'leaseless'])
    expect((await ledger.claim(ask(10))).items).toEqual([])

    expect(await release(ledger, 'leaseless', 'pending')).toMatchObject([{ kind: 'applied' }])
    expect(await release(ledger, 'dueless', 'pending')).toMatchObject([{ kind: 'applied' }])
    expect(await stuckItemsOf(ledger)).toEqual([])
    const { items } = await ledger.claim(ask(10))
    expect(items.map(({ lease }) => lease.id)).toEqual(['leaseless', 'dueless'])
    expect(await ledger.commit(items.map((claimed) => finish(claimed)))).toMatchObject([
      { kind: 'applied' },
      { kind: 'applied' },
    ])
    await backend.close()
  })
})

describe('the view for people', () => {
  it('says in words and dates how each job stands', async () => {
    const file = temporaryFile()
    const backend = openFile({ file, prefix: '', now: () => START })
    const ledger = ledgerOn(backend)
    await ledger.commit([enqueue(item('done')), enqueue(item('active')), enqueue(item('waiting'))])
    await ledger.commit([enqueue(item('later'), { delayMs: 60_000 })])
    const { items } = await ledger.claim(ask(2))
    await ledger.commit([finish(items[0]!)])

    const db = new Database(file, { readonly: true })
    const rows = db.prepare('select id, state, type, worker, enqueued_at, due_at, ended_at from job order by id').all()
    db.close()
    const at = (ms: number) => new Date(ms).toISOString()
    const usual = { type: 'resize', worker: null, enqueued_at: at(START), due_at: at(START), ended_at: null }
    expect(rows).toEqual([
      { ...usual, id: 'active', state: 'active', worker: 'w1' },
      { ...usual, id: 'done', state: 'completed', due_at: null, ended_at: at(START) },
      { ...usual, id: 'later', state: 'scheduled', due_at: at(START + 60_000) },
      { ...usual, id: 'waiting', state: 'waiting' },
    ])
    await backend.close()
  })
})

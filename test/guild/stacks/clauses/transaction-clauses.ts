import assert from 'node:assert/strict'
import { clausesOn } from '../../../../src/testing/conformance/clause.js'
import { AFTER, type Any, ids, record, rejectsWith, type StacksBench, turn } from './bench.js'

export const transactionClauses = clausesOn<StacksBench>()({
  'a transaction commits as a whole and returns its value': {
    law: 'What fn wrote is there when it resolves; its value is returned.',
    hint: 'commit',
    async run(bench) {
      const stacks = await bench.process()
      const value = await stacks.transaction(async (tx) => {
        await tx.book<Any>('o', 'a').put({ id: '1' })
        await stacks.book<Any>('o', 'b').put({ id: '2' })
        return 'done'
      })
      assert.equal(value, 'done')
      assert.deepEqual([await stacks.book('o', 'a').count(), await stacks.book('o', 'b').count()], [1, 1])
    },
  },
  'a rejected transaction leaves no trace': {
    law: 'No documents, no events, no phase-2 calls; the error is the one that was thrown.',
    hint: 'rollback',
    async run(bench) {
      let seen: unknown[] = []
      const stacks = await bench.process((s) => {
        seen = record(s, 'a', AFTER)
      })
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'old', n: 1 })
      seen.length = 0
      const boom = new Error('boom')
      const run = stacks.transaction(async () => {
        await book.put({ id: 'new' })
        await book.patch('old', { n: 2 })
        await book.delete('old')
        throw boom
      })
      await assert.rejects(run, (error) => error === boom)
      assert.deepEqual(await book.list(), [{ id: 'old', n: 1 }])
      assert.deepEqual(seen, [])
    },
  },
  'reads inside a transaction see its writes, those outside do not': {
    law: 'get, find, list, count and or-queries read their own writes; no other reader sees uncommitted data.',
    hint: 'isolation',
    async run(bench) {
      const [stacks, other] = [await bench.process(), await bench.process()]
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'a', n: 1 })
      await book.put({ id: 'b', n: 2 })
      let outside: unknown[] = []
      await stacks.transaction(async () => {
        await book.put({ id: 'c', n: 3 })
        await book.patch('a', { n: 10 })
        await book.delete('b')
        assert.deepEqual(await book.list({ orderBy: ['n', 'asc'] }), [
          { id: 'c', n: 3 },
          { id: 'a', n: 10 },
        ])
        assert.equal(await book.get('b'), null)
        assert.equal(await book.count({ or: [[['n', '=', 10]], [['n', '>', 2]]] }), 2)
        outside = [
          await other.book('o', 'a').list(),
          await other.book('o', 'a').get('c'),
          await stacks.detached(() => stacks.book('o', 'a').count([['n', '<', 5]])),
        ]
      })
      assert.deepEqual(outside, [
        [
          { id: 'a', n: 1 },
          { id: 'b', n: 2 },
        ],
        null,
        2,
      ])
      assert.deepEqual(ids(await other.book('o', 'a').list()), ['a', 'c'])
    },
  },
  'a nested transaction joins the outer one, and its failure undoes both': {
    law: 'The commit happens at the outermost level; one rollback undoes all, even if the failure is caught.',
    hint: 'joining and dooming',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      await stacks.transaction(async () => {
        await book.put({ id: '1' })
        await stacks.transaction(async (tx) => tx.book<Any>('o', 'a').put({ id: '2' }))
        assert.equal(await stacks.detached(() => book.count()), 0)
      })
      assert.equal(await book.count(), 2)
      const run = stacks.transaction(async () => {
        await book.put({ id: '3' })
        await stacks.transaction(async () => Promise.reject(new Error('inner'))).catch(() => undefined)
        await book.put({ id: '4' }).catch(() => undefined)
      })
      const error = await rejectsWith(run, 'TRANSACTION_DOOMED')
      assert.equal((error.cause as Error).message, 'inner')
      assert.equal(await book.count(), 2)
    },
  },
  'a phase-1 failure dooms the transaction even where it is caught': {
    law: 'Later operations reject with TransactionDoomedError, and the commit becomes a rollback.',
    hint: 'doom()',
    async run(bench) {
      const stacks = await bench.process((s) =>
        s.watch<Any>('o', 'a', (event) => {
          if (event.type === 'create' && event.entry['bad'] === true) throw new Error('refused')
        }),
      )
      const book = stacks.book<Any>('o', 'a')
      const later: string[] = []
      const run = stacks.transaction(async () => {
        await book.put({ id: 'ok' })
        await book.put({ id: 'x', bad: true }).catch((error: Error) => later.push(error.message))
        await book.get('ok').catch((error: { code: string }) => later.push(error.code))
        await stacks.transaction(async () => 1).catch((error: { code: string }) => later.push(error.code))
      })
      const error = await rejectsWith(run, 'TRANSACTION_DOOMED')
      assert.equal((error.cause as Error).message, 'refused')
      assert.deepEqual(later, ['refused', 'TRANSACTION_DOOMED', 'TRANSACTION_DOOMED'])
      assert.equal(await book.count(), 0)
    },
  },
  'an operation that fails by itself and is caught does not undo the rest': {
    law: 'An absent document, a stale revision, a bad value or an unknown book are answers, not the end of the transaction.',
    hint: 'step()',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      await stacks.transaction(async () => {
        await book.put({ id: '1' })
        await rejectsWith(book.patch('absent', {}), 'DOCUMENT_NOT_FOUND')
        await rejectsWith(book.patch('1', {}, { ifRev: 'x' }), 'STALE_WRITE')
        await rejectsWith(book.put({ id: '' }), 'STACKS_VALUE')
        await rejectsWith(stacks.book<Any>('o', 'nowhere').put({ id: '1' }), 'UNKNOWN_BOOK')
        await book.put({ id: '2' })
      })
      assert.deepEqual(ids(await book.list()), ['1', '2'])
    },
  },
  'an operation that comes after its transaction ended is refused': {
    law: 'It rejects with TransactionClosedError and never opens its own transaction.',
    hint: 'frames',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      let open = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const late: Promise<unknown>[] = []
      let leaked: ReturnType<typeof stacks.book<Any>> | undefined
      await stacks.transaction(async (tx) => {
        leaked = tx.book<Any>('o', 'a')
        await book.put({ id: '1' })
        late.push(
          gate.then(() => book.put({ id: '2' })),
          gate.then(() => book.get('1')),
          gate.then(() => stacks.transaction(async () => book.put({ id: '3' }))),
        )
        for (const promise of late) promise.catch(() => undefined)
      })
      open()
      for (const promise of late) await rejectsWith(promise, 'TRANSACTION_CLOSED')
      await rejectsWith(leaked!.put({ id: '4' }), 'TRANSACTION_CLOSED')
      assert.deepEqual(ids(await book.list()), ['1'])
    },
  },
  'parallel operations inside a transaction run in the order of their calls': {
    law: 'Promise.all inside a transaction is queued; phase-1 handlers of one write end before the next begins.',
    hint: 'the queue of a frame',
    async run(bench) {
      const order: string[] = []
      const stacks = await bench.process((s) =>
        s.watch<Any>('o', 'a', async (event) => {
          if (event.type === 'delete') return
          order.push(`begin ${event.entry.id}`)
          await turn()
          await s.book<Any>('o', 'b').put({ id: event.entry.id })
          order.push(`end ${event.entry.id}`)
        }),
      )
      const book = stacks.book<Any>('o', 'a')
      await stacks.transaction(async () => {
        const [, , , count] = await Promise.all([
          book.put({ id: '1' }),
          book.put({ id: '2' }),
          book.put({ id: '1', again: true }),
          stacks.book('o', 'b').count(),
        ])
        assert.equal(count, 2)
      })
      assert.deepEqual(order, ['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 1', 'end 1'])
      assert.deepEqual(await book.get('1'), { id: '1', again: true })
    },
  },
  // S18
  'unrelated transactions never share anything': {
    law: 'The first is held open, the second throws half-way: only the first commits, and no reader saw either early.',
    hint: 'async-local scope',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      let proceed = (): void => undefined
      const held = new Promise<void>((resolve) => {
        proceed = resolve
      })
      const first = stacks.transaction(async () => {
        await book.put({ id: 'first-1' })
        await held
        await book.put({ id: 'first-2' })
      })
      const second = stacks.transaction(async () => {
        await book.put({ id: 'second-1' })
        throw new Error('half-way')
      })
      second.catch(() => undefined)
      for (let i = 0; i < 5; i += 1) await turn()
      assert.deepEqual(await book.list(), [])
      proceed()
      await first
      await assert.rejects(second, /half-way/)
      assert.deepEqual(ids(await book.list()), ['first-1', 'first-2'])
    },
  },
  'read-modify-write in transactions loses no update': {
    law: 'Concurrent transactions of two processes behave as if they ran one after the other, or are refused as retryable.',
    hint: 'locks and isolation',
    async run(bench) {
      const both = [await bench.process(), await bench.process()]
      await both[0]!.book<Any>('o', 'a').put({ id: 'n', n: 0 })
      const add = (stacks: (typeof both)[number]) =>
        stacks.transaction(
          async (tx) => {
            const book = tx.book<{ id: string; n: number }>('o', 'a')
            const { n } = (await book.get('n'))!
            await book.put({ id: 'n', n: n + 1 })
          },
          { retries: 1_000 },
        )
      await Promise.all(Array.from({ length: 20 }, (_, i) => add(both[i % 2]!)))
      assert.deepEqual(await both[0]!.book('o', 'a').get('n'), { id: 'n', n: 20 })
    },
  },
  'single writes of one document from many processes all succeed': {
    law: 'A write outside of transactions is tried again by itself when it lost before any handler ran.',
    hint: 'single writes',
    async run(bench) {
      const both = [await bench.process(), await bench.process()]
      const puts = Array.from({ length: 20 }, (_, n) => both[n % 2]!.book<Any>('o', 'a').put({ id: 'x', n }))
      await Promise.all(puts)
      assert.equal(await both[0]!.book('o', 'a').count(), 1)
    },
  },
  'a read-only transaction is one snapshot and refuses writes': {
    law: 'Several reads see one state, whatever is committed meanwhile.',
    hint: 'snapshots',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'a', n: 1 })
      await stacks.transaction(
        async () => {
          assert.deepEqual(await book.list(), [{ id: 'a', n: 1 }])
          await stacks.detached(async () => {
            await book.put({ id: 'a', n: 2 })
            await book.put({ id: 'b', n: 1 })
          })
          assert.deepEqual(await book.list(), [{ id: 'a', n: 1 }])
          assert.deepEqual(await book.get('a'), { id: 'a', n: 1 })
          assert.equal(await book.count(), 1)
          await rejectsWith(book.put({ id: 'c' }), 'TRANSACTION_READ_ONLY')
        },
        { readOnly: true },
      )
      assert.equal(await book.count(), 2)
    },
  },
  'detached runs outside of the transaction': {
    law: 'Its reads see what is committed; its writes stay when the transaction is rolled back.',
    hint: 'detached()',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      let detached: Promise<void> | undefined
      const run = stacks.transaction(async () => {
        await book.put({ id: 'inside' })
        assert.equal(await stacks.detached(() => book.get('inside')), null)
        detached = stacks.detached(() => stacks.book<Any>('o', 'b').put({ id: 'outside' }))
        throw new Error('undone')
      })
      await assert.rejects(run, /undone/)
      await detached
      assert.equal(await book.count(), 0)
      assert.equal(await stacks.book('o', 'b').count(), 1)
    },
  },
  'awaiting a detached write never hangs': {
    law: 'It succeeds where writers do not exclude each other, and is refused with DetachedDeadlockError where they do.',
    hint: 'Detachment',
    async run(bench) {
      const stacks = await bench.process()
      const outcome = await stacks.transaction(async (tx) => {
        await tx.book<Any>('o', 'a').put({ id: '1' })
        return stacks
          .detached(() => stacks.book<Any>('o', 'b').put({ id: '2' }))
          .then(
            () => 'written',
            (error: { code: string }) => error.code,
          )
      })
      assert.ok(['written', 'DETACHED_DEADLOCK'].includes(outcome), outcome)
      // Either way the store goes on.
      await stacks.book<Any>('o', 'a').put({ id: '3' })
      assert.deepEqual(ids(await stacks.book('o', 'a').list()), ['1', '3'])
      assert.equal(await stacks.book('o', 'b').count(), outcome === 'written' ? 1 : 0)
    },
  },
  'a closed store refuses calls, after those under way are done': {
    law: 'close() waits for transactions on their way; then everything rejects with StacksClosedError. Twice is fine.',
    hint: 'close()',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'a')
      const put = book.put({ id: '1' })
      await stacks.close()
      await put
      await stacks.close()
      await rejectsWith(book.put({ id: '2' }), 'STACKS_CLOSED')
      await rejectsWith(book.get('1'), 'STACKS_CLOSED')
      await rejectsWith(
        stacks.transaction(async () => 1),
        'STACKS_CLOSED',
      )
      const again = await bench.process()
      assert.deepEqual(ids(await again.book('o', 'a').list()), ['1'])
    },
  },
})

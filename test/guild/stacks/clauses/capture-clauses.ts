import assert from 'node:assert/strict'
import type { ChangeEvent, Stacks } from 'millrace/guild/stacks'
import { clausesOn } from '../../../../src/testing/conformance/clause.js'
import { AFTER, type Any, record, rejectsWith, type StacksBench, turn } from './bench.js'

/** An event in short: `update prev entry`. */
const brief = (event: ChangeEvent<Any>): unknown[] => {
  switch (event.type) {
    case 'create':
      return ['create', event.entry]
    case 'update':
      return ['update', event.prev, event.entry]
    case 'delete':
      return ['delete', event.id, event.prev]
  }
}

export const captureClauses = clausesOn<StacksBench>()({
  // S10
  'a phase-1 failure undoes the write and everything that handlers wrote': {
    law: 'Neither document exists, and no phase-2 handler is called.',
    hint: 'phase 1',
    async run(bench) {
      let after: unknown[] = []
      const stacks = await bench.process((s) => {
        s.watch<Any>('o', 'a', async () => {
          await s.book<Any>('o', 'b').put({ id: 'd' })
          throw new Error('no')
        })
        after = [record(s, 'a', AFTER), record(s, 'b', AFTER)]
      })
      await assert.rejects(stacks.book<Any>('o', 'a').put({ id: 'x' }), /^Error: no$/)
      assert.equal(await stacks.book('o', 'a').get('x'), null)
      assert.equal(await stacks.book('o', 'b').get('d'), null)
      assert.deepEqual(after, [[], []])
    },
  },
  // S11
  'a phase-2 failure changes nothing and is reported': {
    law: 'The put resolves, both documents exist, the following handlers still run, and there is a warning.',
    hint: 'phase 2',
    async run(bench) {
      let after: unknown[] = []
      const stacks = await bench.process((s) => {
        s.watch<Any>(
          'o',
          'a',
          async () => {
            await s.book<Any>('o', 'b').put({ id: 'd' })
            throw new Error('no')
          },
          AFTER,
        )
        after = record(s, 'a', AFTER)
      })
      await stacks.book<Any>('o', 'a').put({ id: 'x' })
      assert.deepEqual(await stacks.book('o', 'a').get('x'), { id: 'x' })
      assert.deepEqual(await stacks.book('o', 'b').get('d'), { id: 'd' })
      assert.equal(after.length, 1)
      assert.deepEqual(
        bench.warnings.map(({ code, error }) => [code, (error as Error).message]),
        [['PHASE2_FAILED', 'no']],
      )
    },
  },
  // S12
  'phase 1 before phase 2, each in the order of registration': {
    law: 'Registration P2x, P1a, P2y, P1b gives P1a, P1b, P2x, P2y.',
    hint: 'the registry of watchers',
    async run(bench) {
      const order: string[] = []
      const stacks = await bench.process((s) => {
        const watch = (name: string, failOnError: boolean) =>
          s.watch(
            'o',
            'a',
            async () => {
              await turn()
              order.push(name)
            },
            { failOnError },
          )
        watch('P2x', false)
        watch('P1a', true)
        watch('P2y', false)
        watch('P1b', true)
      })
      await stacks.book<Any>('o', 'a').put({ id: 'x' })
      assert.deepEqual(order, ['P1a', 'P1b', 'P2x', 'P2y'])
    },
  },
  // S13
  'phase 1 sees each write, phase 2 the sum': {
    law: 'Two puts in a transaction are two phase-1 updates and one phase-2 update from the state before.',
    hint: 'coalescing',
    async run(bench) {
      let [first, second]: ChangeEvent<Any>[][] = []
      const stacks = await bench.process((s) => {
        first = record(s, 'a')
        second = record(s, 'a', AFTER)
      })
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'a', name: 'Alice' })
      first!.length = 0
      second!.length = 0
      await stacks.transaction(async () => {
        await book.put({ id: 'a', name: 'Bob' })
        await book.put({ id: 'a', name: 'Carol' })
      })
      const [alice, bob, carol] = ['Alice', 'Bob', 'Carol'].map((name) => ({ id: 'a', name }))
      assert.deepEqual(first!.map(brief), [
        ['update', alice, bob],
        ['update', bob, carol],
      ])
      assert.deepEqual(second!.map(brief), [['update', alice, carol]])
    },
  },
  // S14
  'the coalescing table': {
    law: 'create→delete is nothing; update→delete is a delete; delete→create is an update; and so on, in order of first touch.',
    hint: 'Changes',
    async run(bench) {
      let seen: ChangeEvent<Any>[] = []
      const stacks = await bench.process((s) => {
        seen = record(s, 'a', AFTER)
      })
      const book = stacks.book<Any>('o', 'a')
      const steps = {
        put: (n: number) => (id: string) => book.put({ id, n }),
        patch: (n: number) => (id: string) => book.patch(id, { n }),
        del: (id: string) => book.delete(id),
      }
      const { put, patch, del } = steps
      const run = async (isThere: boolean, ...ops: ((id: string) => Promise<unknown>)[]) => {
        await book.delete('x')
        if (isThere) await book.put({ id: 'x', n: 0 })
        seen.length = 0
        await stacks.transaction(async () => {
          for (const op of ops) await op('x')
        })
        return seen.map(brief)
      }
      const old = { id: 'x', n: 0 }
      assert.deepEqual(await run(false, put(1)), [['create', { id: 'x', n: 1 }]])
      assert.deepEqual(await run(false, put(1), patch(2), put(3)), [['create', { id: 'x', n: 3 }]])
      assert.deepEqual(await run(false, put(1), patch(2), del), [])
      assert.deepEqual(await run(true, patch(1), put(2)), [['update', old, { id: 'x', n: 2 }]])
      assert.deepEqual(await run(true, put(0)), [['update', old, old]])
      assert.deepEqual(await run(true, patch(1), del), [['delete', 'x', old]])
      assert.deepEqual(await run(true, del), [['delete', 'x', old]])
      assert.deepEqual(await run(true, del, put(1), patch(2)), [['update', old, { id: 'x', n: 2 }]])
      assert.deepEqual(await run(false, put(1), del, put(2)), [['create', { id: 'x', n: 2 }]])
      assert.deepEqual(await run(true, del, put(1), del), [['delete', 'x', old]])
      seen.length = 0
      await stacks.transaction(async () => {
        for (const id of ['2', '1', '3']) await book.put({ id })
        await book.delete('1')
        await book.patch('2', { n: 1 })
        await book.put({ id: '1' })
      })
      assert.deepEqual(
        seen.map((event) => (event.type === 'create' ? event.entry.id : '')),
        ['2', '1', '3'],
      )
    },
  },
  // S15
  'the cascade depth of phase 1 is limited': {
    law: 'A handler that rewrites its own document is stopped and undone; 16 levels pass, 17 do not.',
    hint: 'frame levels',
    async run(bench) {
      const bump = (s: Stacks) =>
        s.watch<{ id: string; counter: number }>('o', 'a', async (event) => {
          if (event.type === 'update')
            await s.book<Any>('o', 'a').put({ id: event.entry.id, counter: event.entry.counter + 1 })
        })
      const stacks = await bench.process(bump, { differentWatchers: 'allow' })
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'x', counter: 0 })
      const error = await rejectsWith(book.put({ id: 'x', counter: 1 }), 'CASCADE_DEPTH')
      assert.match(error.message, /cascade depth/)
      assert.doesNotMatch(error.message, /Phase-2/)
      assert.deepEqual(await book.get('x'), { id: 'x', counter: 0 })

      const names = Array.from({ length: 17 }, (_, i) => `chain${i + 1}`)
      const chained = await bench.process(
        (s) => {
          for (const [i, name] of names.slice(0, -1).entries())
            s.watch<Any>('o', name, async (event) => {
              if (event.type !== 'create') return
              const last = event.entry['last'] as number
              // Siblings do not add up.
              await s.book<Any>('o', 'b').put({ id: `${name}-1` })
              await s.book<Any>('o', 'b').put({ id: `${name}-2` })
              if (i + 1 < last) await s.book<Any>('o', names[i + 1]!).put(event.entry)
            })
        },
        { books: Object.fromEntries(['b', ...names].map((name) => [name, {}])), differentWatchers: 'allow' },
      )
      // Book 16 is written at level 16, and its own siblings would be level 17: so the last book has no watcher's writes.
      await chained.book<Any>('o', 'chain1').put({ id: 'short', last: 15 })
      assert.deepEqual(await chained.book('o', 'chain15').count(), 1)
      await rejectsWith(chained.book<Any>('o', 'chain1').put({ id: 'long', last: 17 }), 'CASCADE_DEPTH')
      for (const name of names) assert.equal(await chained.book('o', name).get('long'), null)
    },
  },
  // S15
  'a straight chain of 16 books passes, of 17 does not': {
    law: 'The originating write is level 1, level 16 is allowed, level 17 throws and rolls back.',
    hint: 'frame levels',
    async run(bench) {
      const names = Array.from({ length: 17 }, (_, i) => `chain${i + 1}`)
      const stacks = await bench.process(
        (s) => {
          for (const [i, name] of names.slice(0, -1).entries())
            s.watch<Any>('o', name, async (event) => {
              if (event.type === 'create' && i + 1 < (event.entry['books'] as number))
                await s.book<Any>('o', names[i + 1]!).put(event.entry)
            })
        },
        { books: Object.fromEntries(names.map((name) => [name, {}])) },
      )
      const [first, sixteenth] = [stacks.book<Any>('o', 'chain1'), stacks.book<Any>('o', 'chain16')]
      await first.put({ id: 'x', books: 16 })
      assert.equal(await sixteenth.count(), 1)
      await rejectsWith(first.put({ id: 'y', books: 17 }), 'CASCADE_DEPTH')
      for (const name of names) assert.equal(await stacks.book('o', name).get('y'), null)
    },
  },
  // S16
  'the re-entry depth of phase 2 is limited': {
    law: 'A chain of 16 hops ends with an error that reaches the first writer; the hops before stay committed.',
    hint: 'hops',
    async run(bench) {
      const stacks = await bench.process((s) =>
        s.watch<{ id: string; counter: number }>(
          'o',
          'a',
          async (event) => {
            if (event.type === 'update') await s.book<Any>('o', 'a').put({ id: 'x', counter: event.entry.counter + 1 })
          },
          AFTER,
        ),
      )
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'x', counter: 0 })
      const error = await rejectsWith(book.put({ id: 'x', counter: 1 }), 'REENTRY_DEPTH')
      assert.match(error.message, /Phase-2 re-entry depth/)
      assert.doesNotMatch(error.message, /cascade/i)
      assert.deepEqual(await book.get('x'), { id: 'x', counter: 16 })
      // The limit counts one chain, not the store.
      await book.put({ id: 'y', counter: 1 })
    },
  },
  // S16
  'a chain that is too long stops only itself': {
    law: 'Other events and handlers still run before the error is rethrown, also where a handler swallowed it.',
    hint: 'the chain of a scope',
    async run(bench) {
      const seen: string[] = []
      const stacks = await bench.process((s) => {
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            if (event.type === 'delete' || event.entry['loop'] !== true) return
            await s
              .book<Any>('o', 'a')
              .put({ id: event.entry.id, loop: true })
              .catch(() => undefined)
          },
          AFTER,
        )
        s.watch<Any>('o', 'a', (event) => void seen.push(event.type === 'delete' ? event.id : event.entry.id), AFTER)
      })
      const run = stacks.transaction(async (tx) => {
        await tx.book<Any>('o', 'a').put({ id: 'loop', loop: true })
        await tx.book<Any>('o', 'a').put({ id: 'calm' })
      })
      await rejectsWith(run, 'REENTRY_DEPTH')
      assert.equal(seen.at(-1), 'calm')
      assert.equal(seen.filter((id) => id === 'loop').length, 16)
    },
  },
  // S17
  'a phase-1 handler works across awaits in the same transaction': {
    law: 'It writes, awaits, reads through a fresh handle, writes what it read: all documents commit together.',
    hint: 'async-local scope',
    async run(bench) {
      const stacks = await bench.process((s) =>
        s.watch<Any>('o', 'a', async (event) => {
          if (event.type !== 'create') return
          await s.book<Any>('o', 'b').put({ id: 'b1', v: event.entry['v'] })
          await turn()
          const read = await s.book<Any>('o', 'b').get('b1')
          await s.book<Any>('o', 'c').put({ id: 'c1', v: read?.['v'] })
          assert.equal(await s.detached(() => s.book('o', 'b').get('b1')), null)
        }),
      )
      await stacks.book<Any>('o', 'a').put({ id: 'a1', v: 7 })
      for (const [book, id] of [
        ['a', 'a1'],
        ['b', 'b1'],
        ['c', 'c1'],
      ] as const)
        assert.deepEqual(await stacks.book('o', book).get(id), { id, v: 7 })
    },
  },
  // S21
  'watchers are registered during startup only': {
    law: 'Writes made during startup do not close the window; seal() does.',
    hint: 'seal()',
    async run(bench) {
      let seen: unknown[] = []
      const stacks = await bench.process(
        async (s) => {
          await s.book<Any>('o', 'a').put({ id: '1' })
          seen = record(s, 'a')
        },
        { seal: true },
      )
      assert.throws(() => record(stacks, 'a'), { code: 'WATCH_CLOSED' })
      await stacks.book<Any>('o', 'a').put({ id: '2' })
      assert.equal(seen.length, 1)
    },
  },
  'phase 2 runs outside of any transaction, before the write resolves': {
    law: 'A handler sees what was committed, its writes are separate transactions, and the call waits for it.',
    hint: 'phase 2',
    async run(bench) {
      const log: string[] = []
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          async () => {
            log.push(`sees ${await s.detached(() => s.book('o', 'a').count())}`)
            await turn()
            await s.book<Any>('o', 'b').put({ id: 'b' })
            log.push('wrote')
          },
          AFTER,
        ),
      )
      await stacks.transaction(async (tx) => {
        await tx.book<Any>('o', 'a').put({ id: '1' })
        await tx.book<Any>('o', 'a').put({ id: '1', n: 2 })
        log.push('end of fn')
      })
      log.push('resolved')
      assert.deepEqual(log, ['end of fn', 'sees 1', 'wrote', 'resolved'])
    },
  },
  'phase-2 batches of concurrent transactions run in commit order': {
    law: 'Strictly one after the other, whatever they take.',
    hint: 'turns',
    async run(bench) {
      const log: string[] = []
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            if (event.type === 'delete') return
            const { n } = event.entry as unknown as { n: number }
            log.push(`begin ${n}`)
            for (let i = 0; i < 3 - (n % 3); i += 1) await turn()
            log.push(`end ${n}`)
          },
          AFTER,
        ),
      )
      // One document: every backend has one order of commits for it.
      await Promise.all(Array.from({ length: 9 }, (_, n) => stacks.book<Any>('o', 'a').put({ id: 'x', n })))
      const order = log.filter((line) => line.startsWith('begin')).map((line) => line.slice(6))
      assert.equal(order.length, 9)
      assert.deepEqual(
        log,
        order.flatMap((n) => [`begin ${n}`, `end ${n}`]),
      )
      const last = (await stacks.book<Any>('o', 'a').get('x'))!['n']
      assert.equal(Number(order.at(-1)), last)
    },
  },
  'processes with different phase-1 watchers do not write side by side': {
    law: 'The second one to seal is refused with WatcherMismatchError, unless it allows it.',
    hint: 'Writers',
    async run(bench) {
      const first = await bench.process((s) => void record(s, 'a'))
      await bench.process((s) => void record(s, 'a'))
      await rejectsWith(bench.process(), 'WATCHER_MISMATCH')
      await bench.process(undefined, { differentWatchers: 'allow' })
      assert.deepEqual(
        bench.warnings.map(({ code }) => code),
        ['WATCHERS_DIFFER'],
      )
      await first.book<Any>('o', 'a').put({ id: '1' })
    },
  },
})

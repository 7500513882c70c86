import assert from 'node:assert/strict'
import { clausesOn } from '../../../../src/testing/conformance/clause.js'
import { type Any, ids, record, rejectsWith, type StacksBench } from './bench.js'

export const documentClauses = clausesOn<StacksBench>()({
  // S8
  'put replaces the whole document, patch merges and keeps the id': {
    law: 'put never merges; patch merges top-level fields, ignores an id in them and rejects an absent document.',
    hint: 'the engine, put and patch',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      await book.put({ id: 'a', n: 1, r: 'x' })
      await book.put({ id: 'a', n: 1 })
      assert.deepEqual(await book.get('a'), { id: 'a', n: 1 })
      assert.deepEqual(await book.patch('a', { id: 'z', n: 2 }), { id: 'a', n: 2 })
      assert.equal(await book.get('z'), null)
      await rejectsWith(book.patch('absent', { n: 1 }), 'DOCUMENT_NOT_FOUND')
    },
  },
  // S9
  'empty and false values come back unchanged': {
    law: '0, false, the empty string and null are values.',
    hint: 'how documents are stored',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const doc = { id: 'a', count: 0, flag: false, label: '', items: null }
      await book.put(doc)
      assert.deepEqual(await book.get('a'), doc)
    },
  },
  'values are canonical: what is returned, sent to watchers and read later is equal, and private': {
    law: 'undefined members disappear, toJSON is obeyed, and mutating what was given or returned affects no other caller.',
    hint: 'canonical() and private copies',
    async run(bench) {
      let told: unknown
      const stacks = await bench.process((s) =>
        s.watch<Any>('o', 'a', (event) => {
          told = structuredClone(event)
          if (event.type !== 'delete') (event.entry as Record<string, unknown>)['n'] = 'spoilt'
        }),
      )
      const book = stacks.book<Any>('o', 'a')
      const given: Record<string, unknown> & { id: string } = {
        id: 'a',
        gone: undefined,
        at: new Date(0),
        n: -0,
        deep: { list: [1, { é: '𝄞' }], __proto__x: 1, 'a.b': 2, '': 3 },
        big: 1e21,
        small: 5e-324,
        long: 0.1 + 0.2,
      }
      const put = book.put(given)
      given['n'] = 'changed'
      await put
      const expected = {
        id: 'a',
        at: '1970-01-01T00:00:00.000Z',
        n: 0,
        deep: { list: [1, { é: '𝄞' }], __proto__x: 1, 'a.b': 2, '': 3 },
        big: 1e21,
        small: 5e-324,
        long: 0.1 + 0.2,
      }
      const read = await book.get('a')
      assert.deepEqual(read, expected)
      assert.deepEqual(told, { type: 'create', ownerId: 'o', book: 'a', entry: expected })
      ;(read as Record<string, unknown>)['n'] = 'mine'
      const patched = await book.patch('a', { x: 1 })
      ;(patched as Record<string, unknown>)['x'] = 2
      assert.deepEqual(await book.get('a'), { ...expected, x: 1 })
    },
  },
  'values that JSON or a database would lose are refused, and leave nothing': {
    law: 'Functions, NaN, bigint, cycles, undefined in lists, U+0000, lone surrogates, bad ids: StacksValueError.',
    hint: 'canonical()',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const cycle: Record<string, unknown> = { id: 'a' }
      cycle['self'] = cycle
      const bad: unknown[] = [
        { id: 'a', f: () => 1 },
        { id: 'a', n: Number.NaN },
        { id: 'a', n: Infinity },
        { id: 'a', n: 1n },
        { id: 'a', l: [undefined] },
        { id: 'a', m: new Map() },
        { id: 'a', t: 'nul \u0000' },
        { id: 'a', t: 'half \ud800' },
        { id: 'a', '\udc00': 1 },
        cycle,
        { id: '' },
        { id: 7 },
        {},
        [],
        null,
        'a',
        { id: 'x'.repeat(1_025) },
      ]
      for (const doc of bad) await rejectsWith(book.put(doc as Any), 'STACKS_VALUE')
      await rejectsWith(book.patch('a', { n: Number.NaN } as never), 'STACKS_VALUE')
      assert.equal(await book.count(), 0)
    },
  },
  'patch removes a field that is given as undefined': {
    law: 'A field given as undefined is removed; others stay.',
    hint: 'patched()',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      await book.put({ id: 'a', n: 1, m: { k: 1 } })
      assert.deepEqual(await book.patch('a', { n: undefined, m: { l: 2 }, absent: undefined }), {
        id: 'a',
        m: { l: 2 },
      })
      assert.deepEqual(await book.get('a'), { id: 'a', m: { l: 2 } })
    },
  },
  'delete is idempotent, and an absent document makes no event': {
    law: 'Deleting what is not there is no error and no event.',
    hint: 'delete',
    async run(bench) {
      let seen: unknown[] = []
      const stacks = await bench.process((s) => {
        seen = record(s, 'a')
      })
      const book = stacks.book<Any>('o', 'a')
      await book.delete('a')
      await book.put({ id: 'a', n: 1 })
      await book.delete('a')
      await book.delete('a')
      assert.deepEqual(
        seen.map((event) => (event as { type: string }).type),
        ['create', 'delete'],
      )
      assert.equal(await book.get('a'), null)
    },
  },
  'an undeclared book reads as empty and refuses writes': {
    law: 'get is null, find and list are empty, count is 0; a write rejects with UnknownBookError.',
    hint: 'the catalogue of books',
    async run(bench) {
      const stacks = await bench.process()
      const book = stacks.book<Any>('o', 'nowhere')
      assert.equal(await book.get('a'), null)
      assert.equal(await book.rev('a'), null)
      assert.deepEqual(await book.list(), [])
      assert.deepEqual(await book.find({ where: [['x', '=', 1]], orderBy: ['x', 'asc'] }), [])
      assert.equal(await book.count(), 0)
      await rejectsWith(book.put({ id: 'a' }), 'UNKNOWN_BOOK')
      await rejectsWith(book.delete('a'), 'UNKNOWN_BOOK')
      await rejectsWith(book.patch('a', {}), 'DOCUMENT_NOT_FOUND')
      const inside = await stacks.transaction(async (tx) => tx.book<Any>('o', 'nowhere').count())
      assert.equal(inside, 0)
    },
  },
  'declaring a book again changes nothing, and names never collide': {
    law: 'Schema changes only add. Owners and books whose names are alike when flattened are kept apart.',
    hint: 'the catalogue: names of tables and indexes',
    async run(bench) {
      const stacks = await bench.process()
      const owners = [
        ['foo', 'bar_baz'],
        ['foo_bar', 'baz'],
        ['a-b', 'x'],
        ['a_b', 'x'],
        ['a/b', 'x'],
        ['A-B', 'x'],
      ] as const
      for (const [owner, name] of owners) {
        await stacks.declare(owner, { [name]: { indexes: ['a.b', 'a_b', ['a-b', 'a.b'], 'a.b'] } })
        await stacks.book<Any>(owner, name).put({ id: 'x', owner, name })
      }
      for (const [owner, name] of owners) {
        await stacks.declare(owner, { [name]: { indexes: ['a.b', 'c'] } })
        assert.deepEqual(await stacks.book<Any>(owner, name).list(), [{ id: 'x', owner, name }])
      }
    },
  },
  'names that are not allowed are refused before they reach the backend': {
    law: 'Book names are letters, digits, _ and -; field names the same with dots between.',
    hint: 'names.ts',
    async run(bench) {
      const stacks = await bench.process()
      for (const name of ['', 'x y', 'x;', 'x"', 'é', '../x'])
        assert.throws(() => stacks.book('o', name), { code: 'STACKS_NAME' })
      assert.throws(() => stacks.book('o;', 'a'), { code: 'STACKS_NAME' })
      const book = stacks.book<Any>('o', 'a')
      for (const field of ['', "x'", 'x y', 'a..b', '.a', 'a.', 'x"', '$'])
        await rejectsWith(book.find({ where: [[field, '=', 1]] }), 'STACKS_NAME')
      await rejectsWith(stacks.declare('o', { d: { indexes: ["x'"] } }), 'STACKS_NAME')
    },
  },
  'a read-only handle has no way to write': {
    law: 'readBook() returns an object without put, patch and delete, also inside a transaction.',
    hint: 'readHandle()',
    async run(bench) {
      const stacks = await bench.process()
      const write = ['put', 'patch', 'delete']
      const outside = stacks.readBook<Any>('o', 'a')
      const inside = await stacks.transaction(async (tx) => tx.readBook<Any>('o', 'a'))
      for (const name of write) assert.equal(name in outside || name in inside, false, name)
    },
  },
  'compare-and-set: a write with another revision is refused': {
    law: 'rev changes with every write and never comes back; ifRev that does not fit rejects with StaleWriteError.',
    hint: 'checkRev() and the rev column',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      assert.equal(await book.rev('a'), null)
      await rejectsWith(book.patch('a', {}, { ifRev: 'any' }), 'STALE_WRITE')
      await book.put({ id: 'a', n: 1 }, { ifRev: null })
      await rejectsWith(book.put({ id: 'a', n: 9 }, { ifRev: null }), 'STALE_WRITE')
      const first = await book.rev('a')
      assert.equal(typeof first, 'string')
      assert.deepEqual(await book.patch('a', { n: 2 }, { ifRev: first! }), { id: 'a', n: 2 })
      await rejectsWith(book.patch('a', { n: 3 }, { ifRev: first! }), 'STALE_WRITE')
      await rejectsWith(book.delete('a', { ifRev: first! }), 'STALE_WRITE')
      // The same content again is another revision; so is a document made anew.
      const second = await book.rev('a')
      await book.put({ id: 'a', n: 2 })
      assert.notEqual(await book.rev('a'), second)
      await book.delete('a')
      await book.put({ id: 'a', n: 1 })
      assert.equal([first, second].includes((await book.rev('a'))!), false)
      assert.deepEqual(await book.get('a'), { id: 'a', n: 1 })
    },
  },
  'compare-and-set: of many readers of the same revision, one wins': {
    law: 'ifRev is checked and written in one step.',
    hint: 'lock() of the backend',
    async run(bench) {
      const [one, two] = [await bench.process(), await bench.process()]
      await one.book<Any>('o', 'a').put({ id: 'a', n: 0 })
      const rev = (await one.book('o', 'a').rev('a'))!
      const tries = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? one : two).book<Any>('o', 'a').patch('a', { n: i + 1 }, { ifRev: rev }),
      )
      const results = await Promise.allSettled(tries)
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
      for (const result of results)
        if (result.status === 'rejected') assert.equal((result.reason as { code: string }).code, 'STALE_WRITE')
    },
  },
  'list returns everything in the order of ids by default': {
    law: 'Every ordering ends with id ascending by code point.',
    hint: 'the implicit id asc',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      for (const id of ['b', 'B', 'é', '\uffff', '𝄞', 'a', '10', '9', 'aa']) await book.put({ id })
      assert.deepEqual(ids(await book.list()), ['10', '9', 'B', 'a', 'aa', 'b', 'é', '\uffff', '𝄞'])
      assert.deepEqual(ids(await book.list({ limit: 2, offset: 1 })), ['9', 'B'])
      assert.deepEqual(ids(await book.list({ orderBy: ['id', 'desc'], limit: 2 })), ['𝄞', '\uffff'])
    },
  },
})

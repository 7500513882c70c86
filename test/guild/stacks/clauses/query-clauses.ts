import assert from 'node:assert/strict'
import type { Where } from 'millrace/guild/stacks'
import { clausesOn } from '../../../../src/testing/conformance/clause.js'
import { type Any, ids, rejectsWith, type StacksBench } from './bench.js'

export const queryClauses = clausesOn<StacksBench>()({
  // S19
  'absent and null': {
    law: 'IS NULL is true for both; != is false for both; IN [] and { or: [] } match nothing.',
    hint: 'how a filter treats absent fields',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      for (const doc of [{ id: 'a', s: 'x' }, { id: 'b' }, { id: 'c', s: null }]) await book.put(doc)
      const found = async (where: Where) => ids(await book.find({ where }))
      assert.deepEqual(await found([['s', 'IS NULL']]), ['b', 'c'])
      assert.deepEqual(await found([['s', 'IS NOT NULL']]), ['a'])
      assert.deepEqual(await found([['s', '=', null]]), ['b', 'c'])
      assert.deepEqual(await found([['s', '!=', null]]), ['a'])
      assert.deepEqual(await found([['s', '!=', 'y']]), ['a'])
      assert.deepEqual(await found([['s', '!=', 'x']]), [])
      assert.deepEqual(await found([['s', 'IN', []]]), [])
      assert.deepEqual(await found([['s', 'IN', [null]]]), ['b', 'c'])
      assert.deepEqual(await found([['s', 'IN', [null, 'x']]]), ['a', 'b', 'c'])
      assert.deepEqual(await found({ or: [] }), [])
      assert.deepEqual(await found({ or: [[['s', '=', 'x']], []] }), ['a', 'b', 'c'])
      assert.deepEqual(await found([]), ['a', 'b', 'c'])
    },
  },
  // S20
  'a disjunction is sorted, cut and counted as one set': {
    law: 'Sorting and paging apply to the merged set; count counts each id once.',
    hint: 'the native or',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const scores = { b: 10, c: 20, a: 30, d: 40 }
      for (const [id, score] of Object.entries(scores))
        await book.put({ id, score, status: score % 20 === 0 ? 'x' : 'y' })
      const or = [[['status', '=', 'x']], [['status', '=', 'y']]] as const
      assert.deepEqual(ids(await book.find({ where: { or }, orderBy: ['score', 'asc'], limit: 2, offset: 1 })), [
        'c',
        'a',
      ])
      assert.equal(await book.count({ or: [[['score', '>', 15]], [['status', '=', 'x']], []] }), 4)
      assert.equal(await book.count({ or: [[['score', '>', 15]], [['status', '=', 'x']]] }), 3)
    },
  },
  'types do not mix: 1, "1" and true are three values': {
    law: 'Equality and ranges hold within a type only; booleans equal booleans only.',
    hint: 'how a field is compared',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const values = [1, '1', true, false, 0, '0', '', 'true', [1], { k: 1 }, 1.5, '1.5', 1e21, -1]
      for (const [i, v] of values.entries()) await book.put({ id: String.fromCharCode(97 + i), v })
      const found = async (where: Where) => ids(await book.find({ where })).join('')
      assert.equal(await found([['v', '=', 1]]), 'a')
      assert.equal(await found([['v', '=', '1']]), 'b')
      assert.equal(await found([['v', '=', true]]), 'c')
      assert.equal(await found([['v', '=', false]]), 'd')
      assert.equal(await found([['v', '=', 0]]), 'e')
      assert.equal(await found([['v', '=', '']]), 'g')
      assert.equal(await found([['v', '>', 0]]), 'akm')
      assert.equal(await found([['v', '<=', 1]]), 'aen')
      assert.equal(await found([['v', '>', '0']]), 'bhl')
      assert.equal(await found([['v', '<', '1']]), 'fg')
      assert.equal(await found([['v', 'IN', [1, 'true', false]]]), 'adh')
      assert.equal(await found([['v', '!=', 1]]), 'bcdefghijklmn')
      assert.equal(await found([['v', 'LIKE', '1%']]), 'bl')
      assert.equal(await found([['v', 'IS NOT NULL']]), 'abcdefghijklmn')
    },
  },
  'lists are sorted by type, then value, and by code point': {
    law: 'absent and null, numbers, strings by code point, false, true, arrays and objects; desc is the reverse; id asc ends it.',
    hint: 'order by',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const docs: Any[] = [
        { id: 'n1', v: null },
        { id: 'n0' },
        { id: 'i2', v: 10 },
        { id: 'i1', v: 9 },
        { id: 'i0', v: -1.5 },
        { id: 's4', v: '𝄞' },
        { id: 's3', v: '\ue000' },
        { id: 's2', v: 'a' },
        { id: 's1', v: 'Z' },
        { id: 's0', v: '10' },
        { id: 't1', v: true },
        { id: 't0', v: false },
        { id: 'x1', v: [1] },
        { id: 'x0', v: { a: 1 } },
      ]
      for (const doc of docs) await book.put(doc)
      const up = ['n0', 'n1', 'i0', 'i1', 'i2', 's0', 's1', 's2', 's3', 's4', 't0', 't1', 'x0', 'x1']
      assert.deepEqual(ids(await book.list({ orderBy: ['v', 'asc'] })), up)
      const down = ['x0', 'x1', 't1', 't0', 's4', 's3', 's2', 's1', 's0', 'i2', 'i1', 'i0', 'n0', 'n1']
      assert.deepEqual(ids(await book.list({ orderBy: ['v', 'desc'] })), down)
      const both = await book.find({
        where: [['v', 'IS NULL']],
        orderBy: [
          ['v', 'desc'],
          ['id', 'desc'],
        ],
      })
      assert.deepEqual(ids(both), ['n1', 'n0'])
    },
  },
  'LIKE: % and _, ASCII letters in either case, everything else exactly': {
    law: 'No escape character; a newline is an ordinary character; only ASCII letters fold.',
    hint: 'like',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const texts = {
        a: 'Hello',
        b: 'héllo',
        c: 'HÉLLO',
        d: 'a\nb',
        e: '50%',
        f: 'a_b',
        g: '𝄞',
        h: 'back\\slash',
        i: '',
      }
      for (const [id, t] of Object.entries(texts)) await book.put({ id, t })
      const like = async (pattern: string) => ids(await book.find({ where: [['t', 'LIKE', pattern]] })).join('')
      assert.equal(await like('hello'), 'a')
      assert.equal(await like('h_llo'), 'abc')
      assert.equal(await like('hé%'), 'b')
      assert.equal(await like('a_b'), 'df')
      assert.equal(await like('%\n%'), 'd')
      assert.equal(await like('50%'), 'e')
      assert.equal(await like('_'), 'g')
      assert.equal(await like('%\\%'), 'h')
      assert.equal(await like('back\\slash'), 'h')
      assert.equal(await like(''), 'i')
      assert.equal(await like('%'), 'abcdefghi')
      assert.equal(await like('%%l%L%'), 'abc')
    },
  },
  'dots reach into objects, never into lists': {
    law: 'a.b is the member b of the object a; a member that is named "a.b" is not reached; lists are not entered.',
    hint: 'paths',
    async run(bench) {
      const book = (
        await bench.process(undefined, { books: { a: { indexes: ['a.b', ['x-y', 'a.b'], 'a.0'] } } })
      ).book<Any>('o', 'a')
      await book.put({ id: 'a', a: { b: 1 } })
      await book.put({ id: 'b', 'a.b': 1 })
      await book.put({ id: 'c', a: [1, { b: 1 }] })
      await book.put({ id: 'd', a: { 0: 1, b: { c: 1 } }, 'x-y': 2 })
      await book.put({ id: 'e', a: 'text' })
      const found = async (where: Where) => ids(await book.find({ where })).join('')
      assert.equal(await found([['a.b', '=', 1]]), 'a')
      assert.equal(await found([['a.0', '=', 1]]), 'd')
      assert.equal(await found([['a.b.c', '=', 1]]), 'd')
      assert.equal(await found([['x-y', '>=', 2]]), 'd')
      assert.equal(await found([['a.b', 'IS NULL']]), 'bce')
      assert.equal(await found([['constructor', 'IS NULL']]), 'abcde')
    },
  },
  'long texts and many values are compared in full, with or without an index': {
    law: 'An index is an efficiency promise only, never a condition of correctness.',
    hint: 'what an index keeps of a long text',
    async run(bench) {
      const book = (await bench.process(undefined, { books: { a: { indexes: ['t', ['t', 'u']] } } })).book<Any>(
        'o',
        'a',
      )
      const base = 'ü'.repeat(5_000)
      const short = 'ü'.repeat(64)
      for (const [id, t] of Object.entries({
        a: `${base}a`,
        b: `${base}b`,
        c: base,
        d: `${base}A`,
        e: short,
        f: `${short}x`,
      }))
        await book.put({ id, t, u: t })
      const found = async (where: Where) => ids(await book.find({ where })).join('')
      assert.equal(await found([['t', '=', `${base}a`]]), 'a')
      assert.equal(await found([['t', '!=', `${base}a`]]), 'bcdef')
      assert.equal(await found([['t', '>', `${base}A`]]), 'ab')
      assert.equal(await found([['t', '<=', base]]), 'cef')
      assert.equal(await found([['t', '=', short]]), 'e')
      assert.equal(
        await found([
          ['t', '>', short],
          ['t', '<', base],
        ]),
        'f',
      )
      assert.equal(await found([['t', '>=', short]]), 'abcdef')
      assert.equal(await found([['t', 'IN', [`${base}b`, base, short]]]), 'bce')
      assert.deepEqual(ids(await book.list({ orderBy: ['t', 'asc'] })), ['e', 'f', 'c', 'd', 'a', 'b'])
      assert.deepEqual(ids(await book.list({ orderBy: ['t', 'desc'] })), ['b', 'a', 'd', 'c', 'f', 'e'])
      const many = Array.from({ length: 3_000 }, (_, i) => `v${i}`)
      assert.equal(await found([['t', 'IN', [...many, base]]]), 'c')
    },
  },
  'a query that means nothing is refused': {
    law: 'Unknown operators, values of the wrong type, an offset without a limit: StacksQueryError.',
    hint: 'parse-query.ts',
    async run(bench) {
      const book = (await bench.process()).book<Any>('o', 'a')
      const bad: unknown[] = [
        { where: [['n', '==', 1]] },
        { where: [['n', 'like', 'x']] },
        { where: [['n', '>', null]] },
        { where: [['n', '>', true]] },
        { where: [['n', '=', undefined]] },
        { where: [['n', '=', { a: 1 }]] },
        { where: [['n', '=', Number.NaN]] },
        { where: [['n', '=', '\u0000']] },
        { where: [['n', 'IN', 'x']] },
        { where: [['n', 'LIKE', 1]] },
        { where: [['n', 'IS NULL', 1]] },
        { where: [['n', '=']] },
        { where: ['n', '=', 1] },
        { where: { and: [] } },
        { where: 'n = 1' },
        { offset: 1 },
        { limit: -1 },
        { limit: 1.5 },
        { orderBy: 'n' },
        { orderBy: ['n', 'up'] },
        { order: ['n', 'asc'] },
        null,
      ]
      for (const query of bad) await rejectsWith(book.find(query as never), 'STACKS_QUERY')
    },
  },
})

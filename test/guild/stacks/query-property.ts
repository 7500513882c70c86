import fc from 'fast-check'
import { type BookQuery, type Condition, openStacks, type StacksBackend, type Where } from 'millrace/guild/stacks'
import { expect } from 'vitest'
import { type AnyDoc, passes, plainFind } from './plain-filter.js'

const number = fc.oneof(
  fc.constantFrom(
    0,
    1,
    -1,
    2,
    10,
    9,
    1.5,
    0.1 + 0.2,
    1e21,
    -1e-7,
    2 ** 53,
    2 ** 53 + 2,
    2 ** 63,
    5e-324,
    317428432510540100,
  ),
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n)),
)
const pieces = [
  'a',
  'A',
  'b',
  'z',
  '1',
  '10',
  '9',
  '%',
  '_',
  '\\',
  "'",
  '"',
  'é',
  'É',
  'ß',
  'ı',
  'K',
  '\n',
  ' ',
  '\uffff',
  '\ue000',
  '𝄞',
  '\u0001',
]
const text = fc.oneof(
  fc.constantFrom('', 'true', 'null', '1', '0', 'a'.repeat(64), `${'a'.repeat(64)}b`, 'é'.repeat(70)),
  fc.array(fc.constantFrom(...pieces), { maxLength: 4 }).map((list) => list.join('')),
)
const scalar = fc.oneof(number, text, fc.boolean(), fc.constant(null))
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.dictionary(fc.constantFrom('x', 'y'), scalar, { maxKeys: 2 }) },
)
const docs: fc.Arbitrary<AnyDoc[]> = fc
  .uniqueArray(
    fc.record(
      {
        id: text.filter((id) => id !== ''),
        a: value,
        b: value,
        n: fc.record({ x: value, y: value }, { requiredKeys: [] }),
      },
      { requiredKeys: ['id'] },
    ),
    { selector: ({ id }) => id, maxLength: 12 },
  )
  .map((list) => list as AnyDoc[])

const field = fc.constantFrom('a', 'b', 'n', 'n.x', 'n.y', 'a.x', 'id', 'absent', 'n.x.y')
const pattern = fc
  .array(fc.oneof(fc.constantFrom('%', '_'), fc.constantFrom(...pieces)), { maxLength: 5 })
  .map((list) => list.join(''))
const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.tuple(field, fc.constantFrom('=' as const, '!=' as const), scalar),
  fc.tuple(field, fc.constantFrom('>' as const, '>=' as const, '<' as const, '<=' as const), fc.oneof(number, text)),
  fc.tuple(field, fc.constant('LIKE' as const), pattern),
  fc.tuple(field, fc.constant('IN' as const), fc.array(scalar, { maxLength: 4 })),
  fc.tuple(field, fc.constantFrom('IS NULL' as const, 'IS NOT NULL' as const)),
)
const clause = fc.array(condition, { maxLength: 3 })
const where: fc.Arbitrary<Where> = fc.oneof(clause, fc.record({ or: fc.array(clause, { maxLength: 3 }) }))
const order = fc.tuple(field, fc.constantFrom('asc' as const, 'desc' as const))
const query: fc.Arbitrary<BookQuery> = fc
  .record(
    {
      where,
      orderBy: fc.oneof(order, fc.array(order, { maxLength: 3 })),
      limit: fc.nat({ max: 6 }),
      offset: fc.nat({ max: 4 }),
    },
    { requiredKeys: [] },
  )
  .map(({ offset, ...rest }) => (rest.limit === undefined || offset === undefined ? rest : { ...rest, offset }))

export interface QueryProperty {
  /** How many sets of documents are tried. */
  readonly sets: number
  /** How many queries are asked of each. */
  readonly queries: number
}

/**
 * Holds every backend to the plain filter: the same documents, the same queries, inside a transaction and outside, with an
 * index on some fields. Cases are sets times queries.
 */
export async function checkQueries(
  backends: readonly StacksBackend[],
  { sets, queries }: QueryProperty,
): Promise<void> {
  const stores = await Promise.all(backends.map((backend) => openStacks({ backend })))
  try {
    for (const stacks of stores) await stacks.declare('o', { d: { indexes: ['a', 'n.x', ['b', 'a'], ['n.y', 'id']] } })
    await fc.assert(
      fc.asyncProperty(docs, fc.array(query, { minLength: queries, maxLength: queries }), async (list, asked) => {
        for (const [i, stacks] of stores.entries()) {
          const book = stacks.book<AnyDoc>('o', 'd')
          // Every other set is asked for by the very transaction that wrote it.
          const isInside = list.length % 2 === 1
          const ask = async (): Promise<void> => {
            for (const one of asked) {
              const about = () => `${backends[i]!.name}: ${JSON.stringify(one)} over ${JSON.stringify(list)}`
              expect(
                (await book.find(one)).map(({ id }) => id),
                about(),
              ).toEqual(plainFind(list, one))
              const counted = list.filter((doc) => passes(doc, one.where ?? [])).length
              expect(await book.count(one.where), about()).toBe(counted)
            }
          }
          await stacks.transaction(async () => {
            for (const { id } of await book.list()) await book.delete(id)
            for (const doc of list) await book.put(doc)
            if (isInside) await ask()
          })
          if (!isInside) await ask()
        }
      }),
      { numRuns: sets },
    )
  } finally {
    for (const stacks of stores) await stacks.close()
  }
}

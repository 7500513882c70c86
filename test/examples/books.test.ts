import { describe, expect, it } from 'vitest'
import { type BookedItem, type Books, isSettled, problemsOf } from '../../examples/start/books.js'
import type { WritStand } from '../../examples/start/guild.js'
import { EFFECTS, FLOUR, ORDERS, TYPES, WRITS } from '../../examples/start/plan.js'

/** The books of a day on which everything went as planned. */
function rightBooks(): Books {
  const items = TYPES.flatMap(({ type, completed, dead, retries }) =>
    Array.from({ length: completed + dead }, (_, i): BookedItem => {
      const state = i < completed ? 'completed' : 'dead'
      return { id: idOf(type, i), type, state, attempt: i === 0 ? 1 + retries : 1 }
    }),
  )
  const writs = WRITS.map(({ title, phase, rigs }): WritStand => {
    return { title, phase, rigs, killedRigs: 0, why: '', isAtRest: true }
  })
  const effects = [
    ...EFFECTS,
    ...items
      .filter(({ type }) => type === 'feed-sourdough')
      .map(({ id }) => ({ kind: 'feed', subject: id, amount: 1 })),
    ...WRITS.flatMap(({ title, rigs }) =>
      Array.from({ length: rigs }, (_, i) => ({ kind: 'flour', subject: `${title}, rig ${i + 1}`, amount: FLOUR })),
    ),
    ...['rye loaf', 'sandwiches'].map((subject) => ({ kind: 'shelf', subject, amount: 1 })),
  ]
  return { items, writs, effects, board: new Map(ORDERS.map(({ customer }) => [customer, 'on its way'])) }
}

function idOf(type: string, i: number): string {
  return type === 'bake-order' ? `order/${ORDERS[i]?.customer}` : `${type}/${i}`
}

const without = <T>(list: readonly T[], isIt: (one: T) => boolean): T[] => list.filter((one) => !isIt(one))

describe('the books of the example application', () => {
  it('are right when everything went as planned', () => {
    expect(problemsOf(rightBooks())).toEqual([])
    expect(isSettled(rightBooks())).toBe(true)
  })

  it('miss an item that was lost', () => {
    const books = rightBooks()
    const items = without(books.items, ({ id }) => id === 'charge/1')

    expect(problemsOf({ ...books, items })).toEqual([
      'charge: 2 completed, 0 dead, 6 retries, 0 not ended; planned were 3, 0, 6 and 0',
    ])
  })

  it('miss an effect that never happened', () => {
    const books = rightBooks()
    const effects = without(books.effects, ({ kind, subject }) => kind === 'payment' && subject === 'Ada')

    expect(problemsOf({ ...books, effects })).toEqual(['payment of Ada: it did not happen'])
  })

  it.each(['payment', 'label', 'feed', 'flour', 'shelf'])('find a %s that happened twice', (kind) => {
    const books = rightBooks()
    const twice = books.effects.find((effect) => effect.kind === kind)
    const effects = twice === undefined ? [] : [...books.effects, twice]

    expect(problemsOf({ ...books, effects })).toEqual([`${kind} of ${twice?.subject}: it happened 2 times`])
  })

  it('find an unplanned effect, and one of another amount', () => {
    const books = rightBooks()
    const [first, ...rest] = books.effects
    const wrong = { kind: 'payment', subject: 'Ada', amount: 1 }

    expect(first).toMatchObject({ kind: 'payment', subject: 'Ada' })
    expect(problemsOf({ ...books, effects: [wrong, ...rest, { ...wrong, subject: 'Mallory' }] })).toEqual([
      'payment of Ada: 1 instead of 4190',
      'payment of Mallory: nobody planned it',
    ])
  })

  it('find a delivery that is not on the board', () => {
    expect(problemsOf({ ...rightBooks(), board: new Map([['Ada', 'on its way']]) })).toHaveLength(2)
  })

  it('find a writ that did not come to its end, or came to another', () => {
    const books = rightBooks()
    const writs = books.writs.map((writ) => (writ.title === 'wedding cake' ? { ...writ, rigs: 3 } : writ))

    expect(problemsOf({ ...books, writs })).toContain(
      'writ "wedding cake": stuck after 3 rigs; planned was stuck after 2',
    )
  })

  it('excuse the plan of the guild, and nothing else, when its engines were killed too often', () => {
    const books = rightBooks()
    const writs = books.writs.map((writ) => (writ.title === 'sandwiches' ? { ...writ, rigs: 2, killedRigs: 1 } : writ))
    const items = without(books.items, ({ id }) => id === 'spider.engine/9')

    expect(problemsOf({ ...books, items, writs })).toEqual([])
    expect(problemsOf({ ...books, items, writs, effects: [...books.effects, ...books.effects.slice(0, 1)] })).toEqual([
      'payment of Ada: it happened 2 times',
    ])
  })

  it.each(['charge/0', 'feed-sourdough/3'])('are not settled while %s has not ended', (open) => {
    const books = rightBooks()
    const items = books.items.map((item): BookedItem => (item.id === open ? { ...item, state: 'active' } : item))

    expect(isSettled({ ...books, items })).toBe(false)
  })

  it('are not settled while a writ is still active, or before anything was ordered', () => {
    const books = rightBooks()
    const writs = books.writs.map((writ) => ({ ...writ, isAtRest: writ.title !== 'sandwiches' }))

    expect(isSettled({ ...books, writs })).toBe(false)
    expect(isSettled({ items: [], writs: [] })).toBe(false)
  })
})

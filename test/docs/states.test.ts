import { beforeAll, describe, expect, it } from 'vitest'
import { ITEM_STATES } from '../../src/ports/words.js'
import { itemTransitions, type Transition, WAYS } from './item-transitions.js'
import { read } from './pages.js'

/** `a b` in an edge of the picture is each of them; so is `a; b` in a cell of the table. */
const pairs = (from: string, to: string) => from.split(' ').flatMap((a) => to.split(' ').map((b) => `${a} → ${b}`))

const page = read('docs/learn/states.md')
const table = [...page.matchAll(/^\| (\w+) \| (\w+) \| (.+) \|$/gm)]
  .map(([, from = '', to = '', by = '']) => ({ from, to, by: by.split('; ') }))
  .filter(({ from }) => from !== 'from')
const picture = read('docs/learn/states.svg')

describe('the states that the documentation shows', () => {
  let possible: readonly Transition[] = []
  beforeAll(async () => {
    possible = await itemTransitions()
  }, 120_000)

  it('are those that there are', () => {
    const described = [...page.matchAll(/^\| \*(\w+)\* \|/gm)].map(([, word]) => word)
    const drawn = [...picture.matchAll(/class="name"[^>]*>(\w+)</g)].map(([, word]) => word)

    expect(described.toSorted()).toEqual(ITEM_STATES.toSorted())
    expect(drawn.toSorted()).toEqual(ITEM_STATES.toSorted())
  })

  it('change in exactly the ways of the table, and by what it says', () => {
    const shown = table.flatMap(({ from, to, by }) => by.map((one) => `${from} → ${to}: ${one}`))

    expect(shown.toSorted()).toEqual(possible.map(({ from, to, by }) => `${from} → ${to}: ${by}`).toSorted())
  })

  it('change in exactly the ways of the picture', () => {
    const drawn = [...picture.matchAll(/data-from="([^"]+)" data-to="([^"]+)"/g)].flatMap(([, from = '', to = '']) =>
      pairs(from, to),
    )

    expect(drawn.toSorted()).toEqual([...new Set(possible.map(({ from, to }) => `${from} → ${to}`))].toSorted())
  })

  it('were tried with every outcome of a run and every act of a person', () => {
    const moves = new Set(possible.map(({ by }) => by))

    for (const [name, ways] of Object.entries(WAYS)) {
      expect([name, ways.filter((way) => moves.has(way))]).toEqual([name, ways])
    }
  })
})

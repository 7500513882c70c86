import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SlotList } from '../../../src/backends/memory/queue/slot-list.js'
import { NO_SLOT, TimeList } from '../../../src/backends/memory/queue/time-list.js'

interface Item {
  readonly n: number
  readonly rank: number
  slot: number
}

const newLane = () =>
  new TimeList<Item>(
    (a, b) => (a.rank === b.rank ? a.n < b.n : a.rank < b.rank),
    (item, slot) => {
      item.slot = slot
    },
  )

describe('a lane', () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('add' as const), ahead: fc.constantFrom(0, 0, 5, 100, 37, 2) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('take' as const), ahead: fc.constant(0) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), ahead: fc.nat(500) }) },
  )

  it('always has the lowest rank in front, whatever is added and removed', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const lane = newLane()
        const model: Item[] = []
        for (const [n, { do: what, ahead }] of steps.entries()) {
          if (what === 'add') {
            const item = { n, rank: n + ahead, slot: NO_SLOT }
            lane.add(item)
            model.push(item)
          } else {
            const item = what === 'take' ? lane.peek() : model[ahead % Math.max(1, model.length)]
            if (item === undefined) continue
            lane.remove(item, item.slot)
            expect(item.slot).toBe(NO_SLOT)
            model.splice(model.indexOf(item), 1)
          }
          const first = model.toSorted((a, b) => a.rank - b.rank || a.n - b.n)[0]
          expect([lane.peek(), lane.size]).toEqual([first, model.length])
        }
        expect(new Set(lane.values())).toEqual(new Set(model))
      }),
      { numRuns: 1000 },
    )
  })

  it('does nothing when an item that is not inside is removed', () => {
    const lane = newLane()
    lane.remove({ n: 1, rank: 1, slot: NO_SLOT }, NO_SLOT)
    expect(lane.size).toBe(0)
  })
})

describe('a first-in-first-out list', () => {
  it('closes its gaps and reports the new positions', () => {
    const positions = new Map<number, number>()
    const list = new SlotList<number>((item, position) => positions.set(item, position))
    for (let n = 0; n < 1000; n += 1) positions.set(n, list.append(n))
    for (let n = 0; n < 1000; n += 1) if (n % 10 !== 0) list.remove(positions.get(n)!)

    expect(list.size).toBe(100)
    expect([...list.values()]).toEqual(Array.from({ length: 100 }, (_, n) => n * 10))
    expect([list.first(), list.last()]).toEqual([0, 990])
    for (let n = 0; n < 1000; n += 10) list.remove(positions.get(n)!)
    expect([list.size, list.first(), list.last()]).toEqual([0, undefined, undefined])
  })

  it('reads backwards from any point, over gaps', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 200 }), fc.nat(220), (kept, from) => {
        const positions: number[] = []
        const list = new SlotList<number>((item, position) => {
          positions[item] = position
        })
        for (const n of kept.keys()) positions[n] = list.append(n)
        for (const [n, isKept] of kept.entries()) if (!isKept) list.remove(positions[n]!)
        const expected = [...kept.keys()].filter((n) => kept[n] === true && n < from).toReversed()
        expect([...list.backwards((n) => n >= from)]).toEqual(expected)
      }),
      { numRuns: 1000 },
    )
  })
})

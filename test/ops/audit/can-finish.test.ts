import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blockedForever, type GateNeed, itemCycleFrom } from '../../../src/ops/audit/can-finish.js'

const need = (count: number, ...of: readonly string[]): GateNeed => ({ need: count, of })

describe('which held items can never go on', () => {
  it('is those that wait in a cycle, and those that need one of them', () => {
    const held = new Map([
      ['a', need(1, 'b')],
      ['b', need(1, 'a')],
      ['waits for a', need(1, 'a')],
      ['needs one of two', need(1, 'a', 'runs')],
      ['needs both', need(2, 'a', 'runs')],
      ['chain', need(1, 'needs one of two')],
    ])
    const stuck = blockedForever(held, () => false)
    expect([...stuck].toSorted()).toEqual(['a', 'b', 'needs both', 'waits for a'])
    expect(itemCycleFrom('a', held, stuck)).toEqual(['a', 'b'])
    expect(itemCycleFrom('waits for a', held, stuck)).toBeUndefined()
  })

  it('is those that wait for something hopeless', () => {
    const held = new Map([
      ['a', need(1, 'nobody')],
      ['b', need(1, 'a')],
      ['c', need(1, 'nobody', 'runs')],
    ])
    expect([...blockedForever(held, (id) => id === 'nobody')].toSorted()).toEqual(['a', 'b'])
    expect([...blockedForever(held, () => false)]).toEqual([])
  })

  it('is what is left when everything has ended that can, in any order', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'free', 'lost')
    const gate = fc.record({ need: fc.integer({ min: 0, max: 3 }), of: fc.uniqueArray(id, { maxLength: 4 }) })
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e'), gate), (gates) => {
        const held = new Map(Object.entries(gates))
        // The plain way: let end whatever can, again and again.
        const ended = new Set(['a', 'b', 'c', 'd', 'e', 'free'].filter((one) => !held.has(one)))
        for (let before = -1; before < ended.size; ) {
          before = ended.size
          for (const [one, { need: count, of }] of held)
            if (of.filter((member) => ended.has(member)).length >= count) ended.add(one)
        }
        const left = [...held.keys()].filter((one) => !ended.has(one))
        expect([...blockedForever(held, (one) => one === 'lost')].toSorted()).toEqual(left.toSorted())
      }),
      { numRuns: 2_000 },
    )
  })
})

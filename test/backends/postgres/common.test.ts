import { describe, expect, it } from 'vitest'
import { sortOut } from '../../../src/backends/postgres/common.js'
import type { ClaimedItem } from '../../../src/ports/item.js'
import { children, contribute, enqueue, finish, gate, item, retry } from '../settlements.js'

const claimed = (id: string): ClaimedItem => ({
  lease: { id, queue: 'default', token: `token of ${id}`, fence: 1, until: 0 },
  envelope: item(id),
  lapses: 0,
  crashes: 0,
  deliveries: 1,
})

const partsOf = (...batch: Parameters<typeof sortOut>[0]) => {
  const { ends, pushes, rest } = sortOut(batch, () => false)
  return { ends: ends.map(({ at }) => at), pushes: pushes.map(({ at }) => at), rest }
}

describe('a batch in parts', () => {
  it('has the ends of lone items, with and without a value, and pushes of lone items', () => {
    const a = claimed('a')
    const batch = [finish(a), finish(claimed('b'), [contribute('b', '1')], '1'), enqueue(item('c'))]
    expect(partsOf(...batch)).toEqual({ ends: [0, 1], pushes: [2], rest: [] })
  })

  it.each([
    ['an end whose value is not its result', finish(claimed('x'), [contribute('x', '2')], '1')],
    ['an end that folded on a version', finish(claimed('x'), [contribute('x', '1', false, 0)], '1')],
    ['an end with children', finish(claimed('x'), children(claimed('x'), [item('child')]))],
    ['an end with a text that joins texts', finish(claimed('x'), [], '"\x1f"')],
    ['an end with an empty result', finish(claimed('x'), [], '')],
    ['a retry', retry(claimed('x'), 0)],
    ['a push with a deadline', enqueue(item('x', { deadline: 1 }))],
    ['a push with tags', enqueue(item('x', { tags: ['t'] }))],
    ['a push into the group of another', enqueue(item('x', { groupId: 'y' }))],
    ['a push that is due some day', enqueue(item('x'), { delayMs: Infinity })],
    ['a push with an empty input', enqueue(item('x', { input: '' }))],
    ['a gate', { guard: { by: 'absent', id: 'x' }, effects: gate(item('x'), ['m']) } as const],
  ])('leaves %s to the rest', (_, settlement) => {
    expect(partsOf(settlement)).toEqual({ ends: [], pushes: [], rest: [0] })
  })

  it('keeps the order of arrival: all pushes go the same way', () => {
    expect(partsOf(enqueue(item('a')), enqueue(item('b', { tags: ['t'] })), enqueue(item('c'))).rest).toEqual([0, 1, 2])
  })

  it('sends what has to do with the same item or group together', () => {
    const joining = finish(claimed('x'), [{ do: 'joinGroup', groupId: 'a', count: 1 }])
    expect(partsOf(finish(claimed('a')), joining, finish(claimed('b')))).toEqual({
      ends: [2],
      pushes: [],
      rest: [0, 1],
    })
    expect(partsOf(finish(claimed('a')), finish(claimed('a')))).toEqual({ ends: [], pushes: [], rest: [0, 1] })
    expect(partsOf(finish(claimed('a')), enqueue(item('b', { tags: ['t'] })))).toMatchObject({ ends: [0], rest: [1] })
  })
})

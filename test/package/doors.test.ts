import { describe, expect, it } from 'vitest'
import { doors } from '../../scripts/lib/doors.mjs'
import { namesOf } from './door-names.js'

/** `millrace/source` has a middleware `retry`, beside `dlq` and `schema`; the front door has the function that repeats a call. */
const TWO_MEANINGS = ['retry']

describe('the doors', () => {
  it('have no name with two meanings', () => {
    const declarations = new Map<string, Set<string>>()
    for (const door of doors())
      for (const [name, declaration] of namesOf(door.name))
        if (name !== 'default') declarations.set(name, (declarations.get(name) ?? new Set()).add(declaration))
    expect(declarations.size).toBeGreaterThan(300)
    const ambiguous = [...declarations].filter(([, places]) => places.size > 1)
    expect(ambiguous.map(([name, places]) => `${name}: ${[...places].join(', ')}`).sort()).toEqual(
      TWO_MEANINGS.map((name) => expect.stringContaining(`${name}: `)),
    )
  })

  it('ask a newcomer to read no more than 125 names', () => {
    expect(namesOf('millrace').size).toBeLessThanOrEqual(125)
  })
})

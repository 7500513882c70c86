import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { doors } from '../../scripts/lib/doors.mjs'
import { root } from '../../scripts/lib/root.mjs'
import { namesOf } from './door-names.js'

/** `millrace/source` has a middleware `retry`, beside `dlq` and `schema`; the front door has the function that repeats a call. */
const TWO_MEANINGS = ['retry']

const DECLARED_TYPE = /^export (?:abstract )?(?:class|interface|type) (\w+)/gm

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

  it('and the shelves behind them have no type with two declarations', () => {
    // The four storages have tables, contexts and rows of their own, each under the word that all of them use.
    const isStorage = (file: string) => /^src\/backends\/(memory|sqlite|postgres|redis)\//.test(file)
    const places = new Map<string, string[]>()
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => `src/${name}`)
    for (const file of files.filter((one) => one.endsWith('.ts') && !isStorage(one)))
      for (const [, name = ''] of readFileSync(join(root, file), 'utf8').matchAll(DECLARED_TYPE))
        places.set(name, [...(places.get(name) ?? []), file])
    expect(places.size).toBeGreaterThan(700)
    expect([...places].filter(([, all]) => all.length > 1)).toEqual([])
  })

  it('ask a newcomer to read no more than 125 names', () => {
    expect(namesOf('millrace').size).toBeLessThanOrEqual(125)
  })
})

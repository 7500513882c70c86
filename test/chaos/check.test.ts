import { describe, expect, it } from 'vitest'
import { createWork, memoryBackend } from '../../src/index.js'
import { type Accepted, check, hasDrained, type Ran } from './check.js'
import { faultsOf } from './table.js'
import { workTypes } from './work-types.mjs'

/** A day's work without any trouble, and what was written down about it. */
async function quietDay() {
  const ran: Ran[] = []
  const types = workTypes(async (line) => void ran.push(line as unknown as Ran))
  const backend = memoryBackend()
  const w = createWork({ backend, work: [types.leaf, types.part, types.fan], retry: { base: 1 } })
  const leaf = { ...types.leaf({ n: 3, flaky: true, poison: false }), id: 'leaf' }
  const poison = { ...types.leaf({ n: 4, flaky: false, poison: true }), id: 'poison' }
  const fan = { ...types.fan({ id: 'fan', n: 5, parts: 4 }), id: 'fan' }
  await Promise.all([leaf, poison, fan].map((work) => w.enqueue(work)))
  await w.stop()
  const accepted: Accepted[] = [
    { id: 'leaf', kind: 'leaf', result: 6 },
    { id: 'poison', kind: 'poison' },
    { id: 'fan', kind: 'fan', n: 5, parts: 4 },
  ]
  return { backend, accepted, ran }
}

const none = {
  accepted: 1,
  unsure: 0,
  lostAsPromised: 0,
  kills: 0,
  serverRestarts: 0,
  drainMs: 0,
  badExits: [],
  diedAlone: [],
}

describe('the checker of chaos', () => {
  it('finds nothing where nothing is wrong', async () => {
    const { backend, accepted, ran } = await quietDay()
    const verdict = await check(backend, accepted, ran)

    expect(await hasDrained(backend, accepted)).toBe(true)
    expect(faultsOf({ ...verdict, ...none })).toEqual([])
    expect(verdict).toMatchObject({ succeeded: 6, parked: 1, groups: 1, runs: 9, repeatedRuns: 0 })
  })

  it.each([
    ['an item that was lost', { id: 'gone', kind: 'leaf', result: 1 }, 'unfinished', 'gone: unknown'],
    ['a result that is not the one', { id: 'leaf', kind: 'leaf', result: 7 }, 'wrong', 'leaf: 6 instead of 7'],
    [
      'a death that should have been a success',
      { id: 'poison', kind: 'leaf', result: 8 },
      'wrong',
      'poison: aborted, poison instead of 8',
    ],
    [
      'a group that counted too little or too much',
      { id: 'fan', kind: 'fan', n: 5, parts: 3 },
      'doubled',
      'group of fan: open 0, value 20 instead of 15',
    ],
    ['a child that is missing', { id: 'fan', kind: 'fan', n: 5, parts: 5 }, 'unfinished', 'fan/4: unknown'],
  ] as const)('finds %s', async (_, claimed, where, text) => {
    const { backend, ran } = await quietDay()
    const verdict = await check(backend, [claimed], ran)

    const found = where === 'unfinished' ? verdict.unfinished.map((one) => one.text) : verdict[where]
    expect(found).toContain(text)
    expect(faultsOf({ ...verdict, ...none })).not.toEqual([])
    expect(await hasDrained(backend, [claimed])).toBe(where !== 'unfinished')
  })

  it('finds two holders of one lease', async () => {
    const { backend, accepted, ran } = await quietDay()
    const twice = ran.find(({ id, is }) => id === 'leaf' && is === 'start')!
    const verdict = await check(backend, accepted, [...ran, twice])

    expect(verdict.sharedLeases).toEqual([`leaf under fence ${twice.fence}`])
  })

  it('does not take a run in which nothing was accepted for a success', async () => {
    const { backend } = await quietDay()

    expect(faultsOf({ ...(await check(backend, [], [])), ...none, accepted: 0 })).toHaveLength(1)
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  groupValueOf,
  readFinal,
  readValue,
  versionOf,
  writeFinal,
  writeFold,
  writeValue,
} from '../../../src/backends/plain/groups.js'
import { children, complete, enqueue, item, setGroupValue } from './settlements.js'
import { through, world } from './world.js'

const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    '{"$millrace":"fold",',
    '{"$millrace":"fold","value":"x","applied":[]}',
    '{"$millrace":"final","value":"x"}',
    'null',
  ),
)

describe('the text of a group value', () => {
  it('is the value itself, unless that looks like a record of ours', () => {
    expect(writeValue('42')).toBe('42')
    expect(writeValue('{"a":1}')).toBe('{"a":1}')
    expect(writeValue('{"$millrace":"fold","value":"forged"}')).not.toBe('{"$millrace":"fold","value":"forged"}')
  })

  it('gives back any value, written, folded or locked', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.string()), fc.string(), (value, applied, token) => {
        expect(readValue(writeValue(value)).value).toBe(value)
        expect(readValue(writeFold({ value, applied }))).toEqual({ value, applied })
        expect(readFinal(writeFinal(value, token))).toBe(value)
        expect(groupValueOf(writeValue('other'), writeFinal(value, token))).toMatchObject({ value, final: true })
      }),
      { numRuns: 1000 },
    )
  })

  it('has a version that is 0 for none, a safe integer, and another one for another text', () => {
    expect(versionOf(undefined)).toBe(0)
    const seen = new Map<number, string>()
    for (let i = 0; i < 20_000; i += 1) {
      const version = versionOf(`{"n":${i}}`)
      expect(Number.isSafeInteger(version) && version > 0).toBe(true)
      expect(seen.get(version)).toBeUndefined()
      seen.set(version, `${i}`)
    }
  })

  it('takes a lock that is only a flag for a lock of the value beside it', () => {
    expect(groupValueOf('7', '1')).toEqual({ value: '7', final: true, version: versionOf('7') })
  })
})

describe('folding into a group value', () => {
  const fold = async (powers: 'all' | 'documented' | 'minimal') => {
    const made = world(powers)
    await made.ledger.commit(['a', 'b'].map((id) => enqueue(item(id, { groupId: 'g' }))))
    const [a, b] = await made.claim({ leaseMs: 1000 })
    return { ...made, a: a!, b: b! }
  }

  it('an item that folded and died before it could say so does not fold again', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const made = await fold(powers)
      const { commit, ports, clock, claim, again, a, b, get } = made
      ports.fault = ({ name, given }) =>
        JSON.stringify(given[0] ?? '').includes('state:') && name.startsWith('set') ? 'before' : undefined
      expect(await commit(complete(a, '1', [setGroupValue('g', '1', { ifVersion: 0 })]))).toMatchObject({
        kind: 'failed',
      })
      ports.fault = () => undefined
      const other = again()
      const version = (await other.groups(['g']))[0]!.version
      await clock.advance(1001)
      const items = await claim({ ledger: other })
      const [rerun] = items.filter(({ lease }) => lease.id === 'a')
      expect(rerun).toMatchObject({ crashes: 1 })
      // The engine folds again, on what it read: the record knows better.
      const refold = other.commit([complete(rerun!, '1', [setGroupValue('g', '2', { ifVersion: version })])])
      expect((await through(made, refold))[0]).toMatchObject({ kind: 'applied' })
      expect((await other.groups(['g']))[0]).toMatchObject({ value: '1' })
      const [second] = items.filter(({ lease }) => lease.id === b.lease.id)
      const now = (await other.groups(['g']))[0]!
      const end = await through(
        made,
        other.commit([complete(second!, '1', [setGroupValue('g', '2', { ifVersion: now.version })])]),
      )
      expect(end[0]).toEqual({ kind: 'applied', closed: [{ groupId: 'g', value: '2' }] })
      expect(await get('group:g:result')).toContain('"applied":["a:0","b:0"]')
    }
  })

  it('a conflict changes nothing, and children of a folding parent keep their ids', async () => {
    const { commit, a, b, ledger, get } = await fold('documented')
    expect(await commit(complete(a, '1', [setGroupValue('g', '1', { ifVersion: 0 })]))).toMatchObject({
      kind: 'applied',
    })
    const stale = complete(b, '1', [...children(b, ['c']), setGroupValue('g', '1', { ifVersion: 0 })])
    const conflict = await commit(stale)
    expect(conflict).toMatchObject({ kind: 'conflict', groupId: 'g', now: { value: '1', final: false } })
    expect([await get('plan:b'), await get('state:c')]).toEqual([undefined, undefined])
    const now = conflict.kind === 'conflict' ? conflict.now.version : -1
    expect(
      await commit(complete(b, '1', [...children(b, ['c']), setGroupValue('g', '2', { ifVersion: now })])),
    ).toMatchObject({
      kind: 'applied',
    })
    expect((await ledger.groups(['g']))[0]).toMatchObject({ value: '2', open: 1 })
  })

  it('the names of those who folded are dropped once they have settled', async () => {
    const { ledger, claim, get } = world('all')
    const ids = Array.from({ length: 150 }, (_, i) => `i${i}`)
    await ledger.commit(ids.map((id) => enqueue(item(id, { groupId: 'g' }))))
    const items = await claim({ max: 150 })
    let most = 0
    for (const [i, one] of items.entries()) {
      const { version } = (await ledger.groups(['g']))[0]!
      expect(
        (await ledger.commit([complete(one, '1', [setGroupValue('g', String(i + 1), { ifVersion: version })])]))[0],
      ).toMatchObject({ kind: 'applied' })
      most = Math.max(most, readValue(await get('group:g:result')).applied.length)
    }
    expect((await ledger.groups(['g']))[0]).toMatchObject({ value: '150' })
    expect(most).toBeLessThanOrEqual(65)
  })

  it('a locked group takes no more values, without an error', async () => {
    for (const powers of ['all', 'documented', 'minimal'] as const) {
      const { commit, a, b, ledger } = await fold(powers)
      expect(await commit(complete(a, '1', [setGroupValue('g', '"locked"', { final: true })]))).toMatchObject({
        kind: 'applied',
      })
      expect(await commit(complete(b, '1', [setGroupValue('g', '"late"', { ifVersion: 0 })]))).toEqual({
        kind: 'applied',
        closed: [{ groupId: 'g', value: '"locked"' }],
      })
      expect((await ledger.groups(['g']))[0]).toMatchObject({ value: '"locked"', final: true })
    }
  })
})

import { expect, test } from 'vitest'
import { ClaimReader, type ClaimRow } from '../../../src/backends/postgres/claim-rows.js'
import type { Names } from '../../../src/backends/postgres/names.js'
import type { ClaimedItem } from '../../../src/ports/item.js'

const SEPARATOR = '\x1f'
const names = { knownName: () => ({ queue: 'default', type: 'mail' }) } as unknown as Names

async function readHeads(heads: readonly string[], rests?: readonly string[]): Promise<readonly ClaimedItem[]> {
  const ids = heads.map((_, i) => `item-${i}`)
  const joined = (texts: readonly string[]) => texts.join(SEPARATOR)
  const rest = rests === undefined ? null : joined(rests)
  const own = [joined(ids), joined(heads), joined(heads.map(() => '1')), rest, null, null] as const
  const row: ClaimRow = [null, null, null, null, null, null, ...own]
  const items: ClaimedItem[] = []
  await new ClaimReader(names).read(row, { token: 'token', until: 9 }, items)
  return items
}

test('numbers of a head are read as they were written, whatever they look like', async () => {
  const numbers = [-7, 0.25, 0, 1e21, -1.5e-7, Number.MAX_SAFE_INTEGER, 123_456_789_012_345, 1_234_567_890_123_456]
  const items = await readHeads(numbers.map((n, i) => `${i + 1},1,${n},3,${n},${n},5,6,7,8`))
  expect(items.map(({ envelope }) => [envelope.priority, envelope.queueAt, envelope.startAt])).toEqual(
    numbers.map((n) => [n, n, n]),
  )
  const { lease, envelope, lapses, crashes, deliveries, gate } = items[1]!
  expect([lease.token, lease.fence, envelope.attempt, lapses, crashes, deliveries]).toEqual(['token.2', 5, 3, 6, 7, 8])
  expect(gate).toBeUndefined()
})

test('a head ends with what became of the gate, where there was one', async () => {
  const items = await readHeads(['2,1,0,1,0,0,1,0,0,1,t', '1,1,0,1,0,0,1,0,0,1,f', '3,1,0,1,0,0,1,0,0,1'])
  expect(items.map(({ gate }) => gate)).toEqual([{ met: false }, { met: true }, undefined])
})

test('what items share is read once and cannot be changed; a field with the name of the prototype stays a field', async () => {
  const rest = '{"v":1,"retry":{"attempts":3}}'
  const items = await readHeads(
    ['1,1,0,1,0,0,1,0,0,1', '2,1,0,1,0,0,1,0,0,1', '3,1,0,1,0,0,1,0,0,1'],
    [rest, rest, '{"__proto__":{"x":1}}'],
  )
  expect(items[0]!.envelope.retry).toEqual({ attempts: 3 })
  expect(items[1]!.envelope.retry).toBe(items[0]!.envelope.retry)
  expect(Object.isFrozen(items[0]!.envelope.retry)).toBe(true)
  expect(Object.isFrozen(items[0]!.envelope)).toBe(false)
  expect(Object.keys(items[2]!.envelope)).toContain('__proto__')
})

import { afterAll, beforeAll, expect, it } from 'vitest'
import { ledgerOn } from '../ledger-on.js'
import { ask, contribute, enqueue, finish, item, times } from '../settlements.js'
import { Schemas } from './schemas.js'

let schemas: Schemas
beforeAll(async () => {
  schemas = await Schemas.start()
})
afterAll(() => schemas?.stop())

it('texts that hold what joins texts come and go as they are', async () => {
  const backend = await schemas.open()
  const ledger = ledgerOn(backend)
  const odd = ['a\x1fb', '\x1e', '\x1e1', '\x1f', '\x1e0\x1f\x1e', 'plain']
  const ids = odd.map((text, i) => `${i}${text}`)
  await ledger.commit(odd.map((input, i) => enqueue(item(ids[i]!, { input, groupId: `g${input}`, note: input }))))
  const { items } = await ledger.claim(ask(9))
  expect(items.map(({ lease }) => lease.id)).toEqual(ids)
  expect(items.map(({ envelope }) => [envelope.input, envelope.groupId, envelope['note']])).toEqual(
    odd.map((text) => [text, `g${text}`, text]),
  )
  const results = await ledger.commit(items.map((one) => finish(one, [], `=${one.envelope.input}`)))
  expect(results.map(({ kind }) => kind)).toEqual(odd.map(() => 'applied'))
  const views = await ledger.read(ids)
  expect(views.map((view) => view?.result)).toEqual(odd.map((text) => `=${text}`))
  await schemas.close(backend)
})

it('a result that is the value of its group is stored once and read in both places', async () => {
  const backend = await schemas.open()
  const ledger = ledgerOn(backend)
  const ids = ['none', 'value', 'final']
  await ledger.commit(ids.map((id) => enqueue(item(id))))
  const { items } = await ledger.claim(ask(9))
  const [none, value, final] = items
  const answers = await ledger.commit([
    finish(none!, [], '0'),
    finish(value!, [contribute('value', '1')], '1'),
    finish(final!, [contribute('final', '2', true)], '2'),
  ])
  expect(answers).toEqual([
    { kind: 'applied', closed: [{ groupId: 'none' }] },
    { kind: 'applied', closed: [{ groupId: 'value', value: '1' }] },
    { kind: 'applied', closed: [{ groupId: 'final', value: '2' }] },
  ])
  expect(await ledger.groups(ids)).toEqual([
    { open: 0, final: false, version: 0 },
    { value: '1', open: 0, final: false, version: 1 },
    { value: '2', open: 0, final: true, version: 1 },
  ])
  // A late member gives each group a row of its own.
  await ledger.commit(ids.map((id) => enqueue(item(`late ${id}`, { groupId: id }))))
  expect((await ledger.groups(ids)).map((group) => group?.value)).toEqual([undefined, '1', '2'])
  await schemas.close(backend)
})

it('a claim whose inputs need several rows comes in its order', async () => {
  const backend = await schemas.open({ maxItemBytes: 4 * 1_024 * 1_024 })
  const ledger = ledgerOn(backend)
  const ids = times(300, (i) => `item-${i + 100}`)
  const inputOf = (id: string) => (id.endsWith('42') ? `"${'x'.repeat(1_200_000)}"` : '1')
  await ledger.commit(ids.map((id) => enqueue(item(id, { input: inputOf(id) }))))
  const { items } = await ledger.claim(ask(300))
  expect(items.map(({ lease }) => lease.id)).toEqual(ids)
  expect(items.map(({ lease }) => lease.token.split('.').at(-1))).toEqual(ids.map((_, i) => String(i + 1)))
  expect(items.filter(({ envelope }) => envelope.input !== inputOf(envelope.id))).toEqual([])
  await schemas.close(backend)
})

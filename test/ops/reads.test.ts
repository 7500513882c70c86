import { memoryBackend } from 'millrace'
import { expect, it } from 'vitest'
import { openOps } from '../../src/ops/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { ground as sqlite } from '../work/grounds/sqlite.js'
import { describeReads } from './reads-suite.js'

describeReads('memory', () => {
  const clock = new FakeClock()
  return { backend: memoryBackend({ clock }), clock, close: async () => undefined }
})
describeReads('SQLite', () => sqlite.open())

it('is refused on plain ports, in the name of the call and of what is missing', async () => {
  const mem = memoryBackend()
  const ops = openOps({ ...mem, store: { ...mem.store } })
  for (const [call, asked] of [
    ['overview', ops.overview()],
    ['failures', ops.failures()],
    ['workers', ops.workers()],
    ['schedules', ops.schedules()],
  ] as const) {
    await expect(asked).rejects.toMatchObject({ code: 'NOT_SUPPORTED', facts: { capability: 'inspect' } })
    await expect(asked).rejects.toThrow(`ops.${call}()`)
  }
  // Queries that need no list work there, too.
  expect((await ops.preview('any', new Error('x'))).policyFrom).toBe('default')
})

it('says which option is wrong', () => {
  const backend = memoryBackend()
  // @ts-expect-error: a slip of the keyboard
  expect(() => openOps(backend, { prefx: 'a:' })).toThrow('Did you mean "prefix"?')
  // @ts-expect-error: no function
  expect(() => openOps(backend, { redact: true })).toThrow('openOps.redact must be a function')
  // @ts-expect-error: no clock
  expect(() => openOps(backend, { clock: Date })).toThrow('openOps.clock must be a Clock')
})

it('refuses a query that would quietly match everything, or nothing', async () => {
  const ops = openOps(memoryBackend())
  for (const [query, says] of [
    [{ typ: 'mail' }, 'Did you mean "type"?'],
    [{ state: 'failed' }, 'list.state must be'],
    [{ class: 'posion' }, 'list.class must be'],
    [{ type: '' }, 'list.type must be a non-empty string'],
    [{ limit: 0 }, 'list.limit must be'],
    [{ limit: Number.NaN }, 'list.limit must be'],
    [{ limit: 1_000_000 }, 'list.limit must be'],
    [{ before: '2026-01-01' }, 'list.before must be'],
  ] as const) {
    // As a program without types, or a web address, would ask.
    await expect(ops.list(query as never)).rejects.toThrow(says)
  }
  await expect(ops.item('')).rejects.toThrow('item(id) must be a non-empty string')
  await expect(ops.explain(undefined as never)).rejects.toThrow('explain(id) is required')
  expect(await ops.list({ before: 1, limit: 1_000 })).toEqual({ items: [] })
})

it('is one object with everything that people ask and do', async () => {
  const { counts, pause, log, audit } = openOps(memoryBackend())
  // Taken apart, as a command line does it.
  await pause({ queue: 'bulk' }, { who: 'ana', why: 'the bank is closed' })
  expect(await log(1)).toMatchObject([{ who: 'ana', what: 'pause queue bulk' }])
  expect(await counts()).toEqual([])
  expect(await audit()).toMatchObject({ findings: [] })
})

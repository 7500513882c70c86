import { describe, expect, it } from 'vitest'
import { createWork, defineWork, memoryBackend } from '../../src/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { wrapLedger } from '../support/wrap-ledger.js'
import { GROUNDS, world } from './support.js'

const double = defineWork('double', (n: number) => n * 2)

describe.each(GROUNDS)('add (%s)', (ground) => {
  it('resolves when the item is durable, with its receipt', async () => {
    const { w, until } = world(ground, { work: [double], autoStart: false })
    const receipt = await until(w.add(double(1)))
    expect(receipt).toEqual({ kind: 'created', id: expect.any(String) })
    expect((await until(w.states([receipt.id])))[0]).toMatchObject({ type: 'double', status: 'pending' })
    expect(await until(w.add('double', 2, { priority: 5 }))).toMatchObject({ kind: 'created' })
  })

  it('rejects what enqueue throws', async () => {
    const { w, until } = world(ground, { work: [double], autoStart: false })
    await expect(until(w.add('doubel' as 'double', 2))).rejects.toMatchObject({ code: 'UNKNOWN_TYPE' })
    await expect(until(w.add(double(1), { dely: 5 } as object))).rejects.toThrow('Did you mean "delay"?')
    // Users of BullMQ try jobId: the list has to show them what it is called here.
    await expect(until(w.add(double(1), { jobId: 'a' } as object))).rejects.toThrow('Options: id, delay,')
    await expect(until(w.enqueueMany([double(1)], { id: 'a' } as object))).rejects.toThrow('Options: delay,')
  })

  it('takes the id of the item as an option', async () => {
    const { w, until } = world(ground, { work: [double] })
    expect(await until(w.add(double(1), { id: 'double/1' }))).toEqual({ kind: 'created', id: 'double/1' })
    expect(await until(w.add('double', 7, { id: 'double/1' }))).toEqual({ kind: 'coalesced', id: 'double/1' })
    expect(await until(w.enqueue(double(9), { id: 'double/1' }).result())).toBe(2)
    expect(await until(w.add(double(1), { id: undefined as never }))).toMatchObject({ kind: 'created' })
    await expect(until(w.add(double(1), { id: '' }))).rejects.toThrow('enqueue.id must be a string that is not empty')
    await expect(until(w.add(double(1), { id: 5 as never }))).rejects.toThrow('enqueue.id')
  })
})

describe.each(GROUNDS)('a handle by id (%s)', (ground) => {
  it('shows and awaits an item that another process added', async () => {
    const { w, until, another } = world(ground, { work: [double], autoStart: false })
    const { id } = await until(w.add(double(21)))
    const elsewhere = another({ work: [double], autoStart: false })
    const handle = elsewhere.handle(double, id)
    expect(await until(handle.state())).toMatchObject({ id, status: 'pending' })
    const result = handle.result()
    const group = elsewhere.handle('double', id).group()
    w.start()
    expect(await until(result)).toBe(42)
    expect(await until(group)).toBe(42)
    expect(await until(handle.state())).toMatchObject({ id, status: 'success', result: 42 })
    expect(await until(handle.result())).toBe(42)
    await until(elsewhere.stop())
  })

  it.runIf(ground === 'native')(
    'reads an item that has ended once, and another one a second time, when the caller is registered',
    async () => {
      const clock = new FakeClock()
      const reads: (readonly string[])[] = []
      const backend = wrapLedger(memoryBackend({ clock }), (ledger) => ({
        read: (ids) => {
          reads.push(ids)
          return ledger.read(ids)
        },
      }))
      const w = createWork({ backend, clock, work: [double], autoStart: false })
      const { id } = await w.add(double(21))
      reads.length = 0
      const waiting = w.handle(double, id).result({ timeout: 100 })
      await clock.settle()

      expect(reads).toEqual([[id], [id]])
      await clock.advance(100)
      await expect(waiting).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })

      w.start()
      await clock.settle()
      reads.length = 0
      // One read says that it has ended, and how.
      expect(await w.handle(double, id).result()).toBe(42)
      expect(reads).toEqual([[id]])
      await Promise.all([w.stop(), clock.advance(10_000)])
    },
  )

  it('says that there is no such item, immediately', async () => {
    const other = defineWork('other', () => 1)
    const { w, until } = world(ground, { work: [double, other], autoStart: false })
    const { id } = await until(w.add(double(1)))
    expect(await until(w.handle(double, 'none').state())).toBeUndefined()
    await expect(until(w.handle(double, 'none').result())).rejects.toMatchObject({ code: 'UNKNOWN_ITEM' })
    await expect(until(w.handle(double, 'none').group())).rejects.toMatchObject({ code: 'UNKNOWN_ITEM' })
    // The id of an item of another type is a mistake of the caller, and its result would have another codec.
    expect(await until(w.handle(other, id).state())).toBeUndefined()
    await expect(until(w.handle(other, id).result())).rejects.toMatchObject({ code: 'UNKNOWN_ITEM' })
    expect(() => w.handle(double, '')).toThrow('handle(type, id)')
    expect(() => w.handle('doubel' as 'double', id)).toThrow('Did you mean "double"?')
  })

  it('cancels, and is no promise', async () => {
    const { w, until } = world(ground, { work: [double], autoStart: false })
    const { id } = await until(w.add(double(1)))
    const handle = w.handle(double, id)
    expect(await handle).toBe(handle)
    await until(handle.cancel('not needed'))
    expect(await until(handle.state())).toMatchObject({ status: 'dead', ending: 'cancelled' })
    await expect(until(handle.result())).rejects.toThrow('not needed')
  })
})

describe.each(GROUNDS)('enqueueMany (%s)', (ground) => {
  const numbers = function* (to: number) {
    for (let n = 0; n < to; n += 1) yield double(n)
  }

  it('takes an iterable or an async iterable, in chunks, and gives counts', async () => {
    const { w, until, size } = world(ground, { work: [double], autoStart: false })
    const heard: unknown[] = []
    const stream = async function* () {
      yield* numbers(2_500)
    }
    expect(await until(w.enqueueMany(stream(), { onProgress: (so) => heard.push(so.created) }))).toEqual({
      created: 2_500,
      coalesced: 0,
    })
    expect(heard).toEqual([1_000, 2_000, 2_500])
    expect(await until(w.enqueueMany(numbers(10)))).toEqual({ created: 10, coalesced: 0 })
    expect(await until(w.enqueueMany(new Set([...numbers(3)])))).toEqual({ created: 3, coalesced: 0 })
    expect(await size()).toBe(2_513)
  })

  it('keeps what was sent before a failure, and nothing of the chunk that fails', async () => {
    const { w, until, size } = world(ground, { work: [double], autoStart: false })
    const broken = function* () {
      yield* numbers(1_500)
      yield 'no work' as never
      yield* numbers(10)
    }
    await expect(until(w.enqueueMany(broken()))).rejects.toThrow('work must come from a builder')
    expect(await size()).toBe(1_000)
    await expect(until(w.enqueueMany(5 as never))).rejects.toThrow('a list or an iterable of works')
    await expect(until(w.enqueueMany('text' as never))).rejects.toThrow('a list or an iterable of works')
  })
})

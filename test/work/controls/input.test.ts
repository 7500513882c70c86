import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  DEPENDENCY_TYPE,
  defineWork,
  dependency,
  InvalidInputError,
  type WorkContext,
  type WorkResult,
} from '../../../src/index.js'
import { GROUNDS, world } from '../support.js'

const Order = z.object({
  id: z.string(),
  lines: z.array(z.object({ qty: z.number().int().positive() })),
  note: z.string().default('none'),
})

describe.each(GROUNDS)('an input with a schema, on %s ports', (ground) => {
  // W25
  it('reaches the handler as what the schema made of it', async () => {
    const charge = defineWork('charge', (order, ctx) => ctx.result(`${order.id} ${order.note} ${order.lines.length}`), {
      input: Order,
    })
    const { w, until } = world(ground, { work: [charge] })

    expect(await until(w.enqueue(charge({ id: 'o-1', lines: [{ qty: 2 }] })).result())).toBe('o-1 none 1')
    expect(await until(w.enqueue('charge', { id: 'o-2', lines: [], note: 'x' }).result())).toBe('o-2 x 0')
  })

  // W25
  it('is refused at enqueue when it is not valid, with every issue and its path, and nothing is written', async () => {
    const seen: unknown[] = []
    const charge = defineWork('charge', (_order, ctx) => ctx.void(), {
      input: Order,
      options: (order) => {
        seen.push(order)
        return { priority: order.lines.length }
      },
    })
    const { w, until, events, size } = world(ground, { work: [charge], autoStart: false })
    const handle = w.enqueue(charge({ id: 7, lines: [{ qty: -1 }] } as never))
    const error = await until(handle.accepted().catch((caught: unknown) => caught))

    expect(error).toBeInstanceOf(InvalidInputError)
    expect(error).toMatchObject({ code: 'SCHEMA_MISMATCH', type: 'charge' })
    const { message } = error as InvalidInputError
    expect(message).toContain('work "charge"')
    expect(message).toContain('id: ')
    expect(message).toContain('lines.0.qty: ')
    await expect(until(handle.result())).rejects.toBe(error)
    await expect(until(handle.group())).rejects.toBe(error)
    expect(seen).toEqual([])
    expect(events).toEqual([])
    expect(await size()).toBe(0)
    await expect(
      until(w.enqueueMany([charge({ id: 'a', lines: [] }), charge({ id: 'b', lines: [{ qty: 0 }] })])),
    ).rejects.toThrow('lines.0.qty')
    expect(await size()).toBe(0)
  })

  it('may be checked by a schema that takes its time', async () => {
    const taken = new Set(['ada'])
    const Name = z.string().refine(async (name) => !taken.has(name), 'is taken')
    const register = defineWork('register', (name, ctx) => ctx.result(name.length), { input: Name })
    const { w, until, size } = world(ground, { work: [register] })

    expect(await until(w.enqueue(register('grace')).result())).toBe(5)
    await expect(until(w.enqueue(register('ada')).result())).rejects.toThrow('is taken')
    expect(await size()).toBe(0)
  })

  // W25
  it('that is not valid when it runs is poison: the schema has changed since', async () => {
    let calls = 0
    const [before, after] = [z.object({ v: z.number() }), z.object({ v: z.string() })].map((input) =>
      defineWork(
        'versioned',
        (_value, ctx) => {
          calls += 1
          return ctx.void()
        },
        { input: input as z.ZodType<{ v: unknown }, { v: unknown }>, retry: { attempts: 5 } },
      ),
    )
    const { w, until, another, dead } = world(ground, { work: [before!], autoStart: false })
    const handle = w.enqueue(before!({ v: 1 }))
    await until(handle.accepted())
    another({ work: [after!] })

    await expect(until(handle.result())).rejects.toThrow(
      'InvalidInputError: The input of work "versioned" is not valid: v: ',
    )
    expect(calls).toBe(0)
    const buried = await dead()
    if (buried !== undefined) expect(buried).toBe(1)
  })

  it('of a child that is not valid fails its parent, and no child is queued', async () => {
    const child = defineWork('child', (_n, ctx) => ctx.void(), { input: z.number().positive() })
    const parent = defineWork('parent', (n: number, ctx) => ctx.queue([child(1), ctx.queue([child(n)])]), {
      retry: { attempts: 3, base: 1 },
    })
    const { w, until, events } = world(ground, { work: [parent, child] })

    await until(w.enqueue(parent(5)).group())
    await expect(until(w.enqueue(parent(-5)).result())).rejects.toThrow('The input of work "child" is not valid')
    const failed = events.filter((event) => event.kind === 'failed')
    expect(failed.map(({ class: failureClass, rule, willRetry }) => [failureClass, rule, willRetry])).toEqual([
      ['poison', 'schema', false],
    ])
    expect(events.filter(({ kind }) => kind === 'queued')).toHaveLength(4)
  })

  it('of work that comes next is checked before anything is queued, however deeply it is nested', async () => {
    const child = defineWork('child', (_n, ctx) => ctx.void(), { input: z.number().positive() })
    const later = defineWork('later', (_n, ctx) => ctx.void(), {
      input: z.number().refine(async (n) => n > 0, 'must be positive'),
    })
    const ways = {
      next: (n: number, ctx: WorkContext) => ctx.queue([child(1)]).next([child(n)]),
      'next of next': (n: number, ctx: WorkContext) =>
        ctx
          .queue([child(1)])
          .next([child(1)])
          .next([later(n)]),
      'queued next': (n: number, ctx: WorkContext) => ctx.queue([child(1)]).next([ctx.queue([later(n)])]),
      'next of what is inside': (n: number, ctx: WorkContext) => ctx.queue([ctx.queue([child(1)]).next([child(n)])]),
      'after a result': (n: number, ctx: WorkContext) => ctx.result(1).next([later(n)]),
    }
    const parent = defineWork(
      'parent',
      ({ way, n }: { way: keyof typeof ways; n: number }, ctx): WorkResult => ways[way](n, ctx),
      { retry: { attempts: 3, base: 1 } },
    )
    const { w, until, events } = world(ground, { work: [parent, child, later] })
    for (const way of Object.keys(ways) as (keyof typeof ways)[]) {
      events.length = 0
      await expect(until(w.enqueue(parent({ way, n: -5 })).result()), way).rejects.toThrow(
        /The input of work "(child|later)" is not valid/,
      )
      expect(events.filter(({ kind }) => kind === 'queued')).toHaveLength(1)
      expect(events.filter(({ kind }) => kind === 'failed')).toMatchObject([{ class: 'poison', rule: 'schema' }])
      await until(w.enqueue(parent({ way, n: 5 })).group())
    }
  })

  it('of work that a gate holds is refused where the gate is enqueued, or queued by a handler', async () => {
    const child = defineWork('child', (_n, ctx) => ctx.void(), { input: z.number().positive() })
    const later = defineWork('later', (_n, ctx) => ctx.void(), {
      input: z.number().refine(async (n) => n > 0, 'must be positive'),
    })
    const parent = defineWork('parent', (n: number, ctx) => ctx.queue([dependency({ on: [], queue: child(n) })]), {
      retry: { attempts: 1 },
    })
    const { w, until, events, size } = world(ground, { work: [parent, child, later] })
    const refused = /The input of work "(child|later)" is not valid/
    for (const bad of [child(-1), later(-1)]) {
      const gate = () => dependency({ on: [], queue: [child(1), bad] })
      await expect(until(w.enqueue(gate()).accepted())).rejects.toThrow(refused)
      await expect(until(w.enqueue(dependency({ on: [], queue: gate() })).accepted())).rejects.toThrow(refused)
      await expect(until(w.enqueueMany([child(1), gate()]))).rejects.toThrow(refused)
    }
    expect(events).toEqual([])
    expect(await size()).toBe(0)
    await expect(until(w.enqueue(parent(-1)).result())).rejects.toThrow(refused)
    await until(w.enqueue(dependency({ on: [], queue: [child(1), later(1)] })))
    expect(events.filter((event) => event.kind === 'succeeded' && event.type !== DEPENDENCY_TYPE)).toHaveLength(2)
  })

  it('whose schema throws is tried again: that says nothing about the input', async () => {
    let calls = 0
    const flaky: StandardSchemaV1<string, string> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value) => {
          calls += 1
          if (calls === 2) throw new Error('the registry is down')
          return { value: String(value) }
        },
      },
    }
    const type = defineWork('flaky', (text, ctx) => ctx.result(text), { input: flaky, retry: { attempts: 3, base: 1 } })
    const { w, until, events } = world(ground, { work: [type] })

    expect(await until(w.enqueue(type('x')).result())).toBe('x')
    expect(events.filter(({ kind }) => kind === 'failed')).toHaveLength(1)
    calls = 1
    await expect(until(w.enqueue(type('y')).result())).rejects.toThrow('the registry is down')
  })
})

describe('a schema that is none', () => {
  it('is refused when the type is defined', () => {
    expect(() => defineWork('bad', (_: string, ctx) => ctx.void(), { input: { parse: () => 1 } } as never)).toThrow(
      'work "bad".input',
    )
  })
})

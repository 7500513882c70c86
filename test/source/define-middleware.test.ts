import { describe, expect, it } from 'vitest'
import { PoisonError } from '../../src/core/failure/failure-errors.js'
import { ack, nak, type Result, reject, skip, term } from '../../src/core/stream/result.js'
import { InvalidResultError } from '../../src/core/stream/stream-errors.js'
import { background, withAttempt } from '../../src/source/message/context.js'
import { defineMiddleware, type Thrown } from '../../src/source/middleware/define-middleware.js'
import type { BatchEntry, BatchStep, Middleware } from '../../src/source/middleware/handler.js'
import { messageOf } from './message-of.js'

const entries = (...cursors: readonly string[]): BatchEntry[] =>
  cursors.map((cursor, i) => ({ ctx: withAttempt(background(), i + 1), message: messageOf({ cursor }) }))
const cursorOf = (entry: BatchEntry) => entry.message.cursor.toString()

/** A middleware that writes down everything: it answers "stop", and throws before "bad" and after "late". */
function noting() {
  const log: string[] = []
  const middleware = defineMiddleware<string>({
    kind: 'noting',
    before(_ctx, message) {
      const name = message.cursor.toString()
      log.push(`before ${name}`)
      if (name === 'bad') throw new PoisonError('bad')
      return name === 'stop' ? { answer: skip() } : { state: `state of ${name}` }
    },
    after(_ctx, message, result, state, thrown: Thrown | undefined) {
      const name = message.cursor.toString()
      log.push(`after ${name}: ${result.action}, ${state}${thrown === undefined ? '' : ', thrown'}`)
      if (name === 'late') throw new Error('late')
      return result
    },
  })
  return { log, middleware }
}

describe('a middleware in two halves', () => {
  it('hands what the first half found to the second', async () => {
    const { log, middleware } = noting()
    const handler = middleware(() => ack())
    expect(await handler(background(), messageOf({ cursor: 'a' }))).toBe(ack())
    expect(await handler(background(), messageOf({ cursor: 'stop' }))).toBe(skip())
    expect(log).toEqual(['before a', 'after a: ack, state of a', 'before stop'])
  })

  it('sees what was thrown, and what the classifier makes of it', async () => {
    const { log, middleware } = noting()
    const poison = new PoisonError('x')
    const result = await middleware(() => {
      throw poison
    })(background(), messageOf({ cursor: 'a' }))
    expect(result).toEqual(term(poison))
    expect(log).toEqual(['before a', 'after a: term, state of a, thrown'])
  })

  it('never sees anything but a result: what is none is a nak', async () => {
    const { log, middleware } = noting()
    const result = await middleware((() => 'done') as never)(background(), messageOf({ cursor: 'a' }))
    expect(result).toMatchObject({ action: 'nak', error: expect.any(InvalidResultError) })
    expect(log[1]).toBe('after a: nak, state of a')
  })

  it('may do without either half', async () => {
    const failure = new Error('x')
    const nothing = defineMiddleware<never>({ kind: 'nothing' })
    expect(await nothing(() => ack())(background(), messageOf())).toBe(ack())
    await expect(nothing(() => Promise.reject(failure))(background(), messageOf())).rejects.toBe(failure)
    expect(await nothing.mapBatch!(async (all) => all.map(() => ack()))(entries('a', 'b'))).toEqual([ack(), ack()])
  })

  it('answers synchronously when both halves and the handler do, and later when one of them does', async () => {
    const { middleware } = noting()
    const message = messageOf({ cursor: 'a' })
    expect(middleware(() => ack())(background(), message)).toBe(ack())
    expect(middleware(async () => ack())(background(), message)).toBeInstanceOf(Promise)
    // A promise of another kind is one, too.
    const thenable = { then: (resolve: (result: Result) => void) => void resolve(skip()) } as unknown as Promise<Result>
    expect(await middleware(() => thenable)(background(), message)).toBe(skip())
  })

  it('may show the handler another message, and keeps the first for itself', async () => {
    const other = messageOf({ cursor: 'other' })
    const seen: string[] = []
    const swap = defineMiddleware<undefined>({
      kind: 'swap',
      before: () => ({ state: undefined, message: other }),
      after(_ctx, message, result) {
        seen.push(`after ${message.cursor.toString()}`)
        return result
      },
    })
    await swap((_ctx, message) => {
      seen.push(message.cursor.toString())
      return ack()
    })(background(), messageOf({ cursor: 'a' }))
    await swap.mapBatch!(async (all) => {
      seen.push(...all.map(cursorOf))
      return all.map(() => ack())
    })(entries('b'))
    expect(seen).toEqual(['other', 'after a', 'other', 'after b'])
  })
})

describe('the same middleware on a batch', () => {
  const inBatch = (middleware: Middleware, step: BatchStep, ...cursors: readonly string[]) =>
    middleware.mapBatch!(step)(entries(...cursors))

  it('gives each member its own halves, and the handler those that go on', async () => {
    const { log, middleware } = noting()
    const called: string[][] = []
    const results = await inBatch(
      middleware,
      async (going) => {
        called.push(going.map(cursorOf))
        return going.map((entry) => (cursorOf(entry) === 'c' ? reject('c') : ack()))
      },
      'a',
      'stop',
      'c',
      'd',
    )
    expect(called).toEqual([['a', 'c', 'd']])
    expect(results).toEqual([ack(), skip(), reject('c'), ack()])
    expect(log.filter((line) => line.startsWith('after'))).toEqual([
      'after a: ack, state of a',
      'after c: term, state of c',
      'after d: ack, state of d',
    ])
  })

  it('does not call the handler when every member was answered', async () => {
    const { middleware } = noting()
    const step: BatchStep = () => expect.unreachable()
    expect(await inBatch(middleware, step, 'stop', 'stop')).toEqual([skip(), skip()])
  })

  it('confines what fails to its own member', async () => {
    const { log, middleware } = noting()
    const results = await inBatch(middleware, async (going) => going.map(() => ack()), 'a', 'bad', 'late', 'd')
    expect(results.map((r: Result) => [r.action, (r.error as Error | undefined)?.message])).toEqual([
      ['ack', undefined],
      ['term', 'bad'],
      ['nak', 'late'],
      ['ack', undefined],
    ])
    expect(log).toContain('after d: ack, state of d')
    expect(log).not.toContain('after bad: ack, state of bad')
  })

  it('brings every member to its end when the handler throws', async () => {
    const { log, middleware } = noting()
    const failure = new Error('all of it')
    const results = await inBatch(middleware, () => Promise.reject(failure), 'a', 'stop', 'c')
    expect(results).toEqual([nak(failure), skip(), nak(failure)])
    expect(log.filter((line) => line.startsWith('after'))).toEqual([
      'after a: nak, state of a, thrown',
      'after c: nak, state of c, thrown',
    ])
  })

  it('never loses a member when a step inside returns too few results', async () => {
    const { middleware } = noting()
    const results = await inBatch(middleware, async () => [ack()], 'a', 'b')
    expect(results[0]).toBe(ack())
    expect(results[1]).toMatchObject({ action: 'nak', error: expect.any(InvalidResultError) })
  })
})

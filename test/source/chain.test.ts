import { describe, expect, it } from 'vitest'
import { ack, type Result, term } from '../../src/core/stream/result.js'
import { background } from '../../src/source/message/context.js'
import { Headers } from '../../src/source/message/headers.js'
import { type Message, vendorToken } from '../../src/source/message/message.js'
import { chain, chainWith, MiddlewareOrderError } from '../../src/source/middleware/chain.js'
import type { Handler, Middleware } from '../../src/source/middleware/handler.js'

const message: Message = {
  key: null,
  value: new Uint8Array(),
  headers: Headers.empty,
  subject: 'orders',
  partitionKey: '',
  cursor: { toString: () => '1' },
  as: () => undefined,
}

const logging = () => {
  const log: string[] = []
  const base: Handler = () => {
    log.push('handler')
    return ack()
  }
  const named =
    (name: string): Middleware =>
    (next) =>
    async (ctx, m) => {
      log.push(`in:${name}`)
      const result = await next(ctx, m)
      log.push(`out:${name}`)
      return result
    }
  return { log, base, named }
}

const tagged = (kind: string): Middleware =>
  Object.assign(
    (next: Handler): Handler =>
      (ctx, m) =>
        next(ctx, m),
    { kind },
  )

describe('a handler in a chain of middleware', () => {
  // S6
  it('is wrapped with the first listed outermost', async () => {
    const { log, base, named } = logging()
    await chain(base, named('A'), named('B'), named('C'))(background(), message)
    expect(log).toEqual(['in:A', 'in:B', 'in:C', 'handler', 'out:C', 'out:B', 'out:A'])
  })

  // S6
  it('skips nullish entries, and without middleware is the handler itself', async () => {
    const { log, base, named } = logging()
    await chain(base, null, named('A'), undefined)(background(), message)
    expect(log).toEqual(['in:A', 'handler', 'out:A'])
    expect(chain(base)).toBe(base)
    expect(chain(base, null, undefined)).toBe(base)
  })

  // S7
  it('is not called when a guard answers first', async () => {
    const { log, base } = logging()
    const guard: Middleware = () => () => term(undefined)
    const result: Result = await chain(base, guard)(background(), message)
    expect(result.action).toBe('term')
    expect(log).toEqual([])
  })
})

describe('the order of tagged middleware', () => {
  // S26
  it('must have dlq outside retry, so that what runs out of attempts is dead-lettered', () => {
    const { base } = logging()
    expect(() => chain(base, tagged('retry'), tagged('dlq'))).toThrow(MiddlewareOrderError)
    expect(() => chain(base, tagged('retry'), tagged('schema'), tagged('dlq'))).toThrow(/dlq before retry/)
    expect(() => chain(base, tagged('dlq'), tagged('retry'))).not.toThrow()
    expect(() => chain(base, tagged('dlq'), tagged('retry'), tagged('idempotency'), tagged('schema'))).not.toThrow()
    expect(() => chain(base, tagged('dlq'), tagged('retry'), tagged('schema'), tagged('idempotency'))).not.toThrow()
  })

  it('must not have a kind twice', () => {
    const { base, named } = logging()
    try {
      chain(base, tagged('retry'), named('x'), tagged('retry'))
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({
        code: 'MIDDLEWARE_ORDER',
        name: 'MiddlewareOrderError',
        facts: { outer: 'retry', inner: 'retry' },
      })
    }
  })

  it('does not matter for untagged ones, nor when the caller takes responsibility', () => {
    const { base, named } = logging()
    expect(() => chain(base, named('A'), named('A'))).not.toThrow()
    const wrong = [tagged('retry'), tagged('dlq'), tagged('retry')]
    expect(() => chainWith({ allowAnyOrder: true }, base, wrong)).not.toThrow()
    expect(() => chainWith({ allowAnyOrder: false }, base, wrong)).toThrow(MiddlewareOrderError)
    expect(() => chainWith({}, base, wrong)).toThrow(MiddlewareOrderError)
  })
})

describe('a chain of something else', () => {
  it('is refused when it is built, not when the first message comes', () => {
    const { base } = logging()
    expect(() => chain(undefined as unknown as Handler)).toThrow(/handler.* must be a function/)
    expect(() => chain(base, {} as unknown as Middleware)).toThrow(/middleware.* must be a function/)
    const broken = Object.assign(() => undefined, { kind: 'broken' }) as unknown as Middleware
    expect(() => chain(base, broken)).toThrow(/"broken" must return a handler/)
  })
})

describe('a vendor token', () => {
  it('is equal to no other, whatever its name', () => {
    const mine = vendorToken<{ seq: number }>('nats')
    const theirs = vendorToken<{ seq: number }>('nats')
    const m: Message = { ...message, as: <T>(token: unknown) => (token === mine ? ({ seq: 7 } as T) : undefined) }
    expect(m.as(mine)?.seq).toBe(7)
    expect(m.as(theirs)).toBeUndefined()
    expect(mine).toEqual({ name: 'nats' })
  })
})

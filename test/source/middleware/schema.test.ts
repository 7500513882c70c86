import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { RetryAfterError, RetryableError, SchemaError } from '../../../src/core/failure/failure-errors.js'
import { isPoison } from '../../../src/core/failure/failure-predicates.js'
import { ack, nak, type Result, skip, term } from '../../../src/core/stream/result.js'
import { background } from '../../../src/source/message/context.js'
import { decoded, PreparedMessage } from '../../../src/source/message/decoded.js'
import type { Message } from '../../../src/source/message/message.js'
import { contentTypeValidator } from '../../../src/source/middleware/content-type-validator.js'
import type { Handler } from '../../../src/source/middleware/handler.js'
import { InvalidPayloadError, schema, type Validator } from '../../../src/source/middleware/schema.js'
import { type MessageSpec, messageOf } from '../message-of.js'

async function through(validator: Parameters<typeof schema>[0], message: Message = messageOf(), inner: Result = ack()) {
  const seen: Message[] = []
  const handler: Handler = (_ctx, m) => {
    seen.push(m)
    return inner
  }
  return { result: await schema(validator)(handler)(background(), message), seen }
}

const withPayload = (value: unknown, spec: MessageSpec = {}) =>
  new PreparedMessage(messageOf(spec), { decoded: { ok: true, value } })

const throwing =
  (error: unknown): Validator =>
  () => {
    throw error
  }

describe('a message that its validator refuses', () => {
  const problem = new Error('field x missing')

  it.each<[string, Validator]>([
    ['throws', throwing(problem)],
    ['rejects', () => Promise.reject(problem)],
    ['returns an error', () => problem],
    ['resolves with an error', async () => problem],
    // S32
  ])('is poison, and its handler never sees it: the validator %s', async (_how, validator) => {
    const { result, seen } = await through(validator)
    expect(result).toMatchObject({ action: 'term', class: 'poison', requeueMs: 0 })
    expect(result.error).toBeInstanceOf(SchemaError)
    expect(result.error).toMatchObject({ subject: 'orders', cause: problem })
    expect(isPoison(result.error)).toBe(true)
    expect(seen).toEqual([])
  })

  it('is poison whatever was thrown', async () => {
    for (const thrown of ['words', null, undefined, { issues: [] }]) {
      expect((await through(throwing(thrown))).result).toMatchObject({ action: 'term', class: 'poison' })
    }
  })

  it('is poison when a zod schema throws in a function', async () => {
    const Order = z.object({ id: z.string() })
    const { result } = await through((_ctx, m) => void Order.parse(JSON.parse(String(m.value.length))))
    expect(result).toMatchObject({ action: 'term', class: 'poison' })
  })
})

describe('a message that its validator accepts', () => {
  it('runs, and its result is unchanged', async () => {
    const failed = nak(new Error('later'))
    for (const validator of [() => undefined, async () => undefined, () => null as never]) {
      for (const inner of [ack(), skip(), failed, term('no')]) {
        const message = messageOf()
        const { result, seen } = await through(validator, message, inner)
        expect(result).toBe(inner)
        expect(seen).toEqual([message])
        expect(seen[0]).toBe(message)
      }
    }
  })

  it('gets the error of a handler that throws', async () => {
    const failure = new Error('handler')
    const run = schema(() => undefined)(() => {
      throw failure
    })(background(), messageOf())
    await expect(run).rejects.toBe(failure)
  })
})

describe('a validator that could not do its work', () => {
  it.each<[string, unknown, number]>([
    ['says that it may succeed later', new RetryableError('registry is starting'), 0],
    ['asked to be left alone', new RetryAfterError(5_000), 5_000],
    ['could not reach its registry', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 0],
    ['found its registry unwell', Object.assign(new Error('HTTP 503'), { status: 503 }), 0],
    ['hides that in a cause', new Error('no schema', { cause: Object.assign(new Error(), { code: 'ENOTFOUND' }) }), 0],
  ])('makes the message come again when it %s', async (_name, error, requeueMs) => {
    for (const validator of [throwing(error), () => error as Error]) {
      const { result, seen } = await through(validator)
      expect(result).toMatchObject({ action: 'nak', class: 'retryable', requeueMs })
      expect(result.error).toBe(error)
      expect(seen).toEqual([])
    }
  })

  it.each([true, false, 'invalid', 0])('by answering %j makes it come again: that is no answer', async (answer) => {
    const { result } = await through((() => answer) as never)
    expect(result).toMatchObject({ action: 'nak' })
    expect((result.error as Error).message).toContain('a function that returns nothing or an Error')
  })
})

describe('a message that was given up before its turn', () => {
  it('is not validated: what could not be decoded has a better reason already', async () => {
    const override = term(new Error('undecodable'))
    const message = new PreparedMessage(messageOf(), { override })
    const { seen } = await through(throwing(new Error('must not be asked')), message)
    expect(seen).toEqual([message])
    expect((await through(z.object({ id: z.string() }), message)).seen).toEqual([message])
  })
})

describe('a Standard Schema', () => {
  const Order = z.object({ id: z.string(), qty: z.number().int().positive() })

  it('refuses a payload with what is wrong, and where', async () => {
    const { result, seen } = await through(Order, withPayload({ id: 7, qty: -1 }))
    expect(result).toMatchObject({ action: 'term', class: 'poison' })
    const cause = (result.error as SchemaError).cause as InvalidPayloadError
    expect(cause).toBeInstanceOf(InvalidPayloadError)
    expect(cause.issues).toHaveLength(2)
    expect(cause.message).toMatch(/^id: .*; qty: /)
    expect((result.error as Error).message).toContain('qty: ')
    expect(seen).toEqual([])
  })

  it('gives the handler what it made of the payload: defaults, coercions, transforms', async () => {
    const Shaped = z.object({ at: z.coerce.date(), qty: z.number().default(1), junk: z.never().optional() })
    const message = withPayload({ at: '2026-01-01T00:00:00Z' }, { subject: 's', cursor: '4' })
    const { seen } = await through(Shaped, message)
    expect(decoded(seen[0]!)).toEqual({ ok: true, value: { at: new Date('2026-01-01T00:00:00Z'), qty: 1 } })
    expect(seen[0]!.cursor.toString()).toBe('4')
    expect((seen[0] as PreparedMessage).original).toBe(message.original)
  })

  it('may be asynchronous', async () => {
    const Known = z.string().refine(async (id) => id === 'known', 'unknown id')
    expect((await through(Known, withPayload('known'))).result).toBe(ack())
    expect((await through(Known, withPayload('other'))).result).toMatchObject({
      action: 'term',
      error: { cause: { message: 'unknown id' } },
    })
  })

  it('of any other library works too, also one that is a function', async () => {
    const arkLike = Object.assign(() => undefined, {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          value === 1 ? { value } : { issues: [{ message: 'not one', path: [{ key: 'a' }, 0] }] },
      },
    })
    expect((await through(arkLike, withPayload(1))).result).toBe(ack())
    expect((await through(arkLike, withPayload(2))).result).toMatchObject({
      error: { cause: { message: 'a.0: not one' } },
    })
  })

  it('whose own code fails for a while makes the message come again', async () => {
    const broken = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: () => Promise.reject(Object.assign(new Error('registry'), { code: 'ECONNRESET' })),
      },
    }
    expect((await through(broken, withPayload(1))).result).toMatchObject({ action: 'nak' })
  })

  it('on a payload that was not decoded makes it come again, and says what is missing', async () => {
    const { result } = await through(Order, messageOf())
    expect(result).toMatchObject({ action: 'nak', error: { code: 'NO_CODEC' } })
    expect((result.error as Error).message).toContain('give the hopper a codec')
  })
})

describe('a validator that is none', () => {
  it.each([[undefined], [null], ['json'], [{}]])('%j is a TypeError', (validator) => {
    expect(() => schema(validator as never)).toThrow(TypeError)
    expect(() => schema(validator as never)).toThrow('schema(validator)')
  })
})

describe('contentTypeValidator', () => {
  const check = async (options: Parameters<typeof contentTypeValidator>[0], spec: MessageSpec) => {
    const { result } = await through(contentTypeValidator(options), messageOf(spec))
    return result.action === 'ack' ? 'valid' : (result.error as SchemaError).cause
  }
  const type = (value: string) => ({ headers: { 'Content-Type': value } })

  // S33
  it('accepts what is allowed, ignoring case and parameters, and nothing else', async () => {
    const options = { allowed: ['application/json', 'Application/Avro; v=1'] }
    expect(await check(options, type('application/json'))).toBe('valid')
    expect(await check(options, type('APPLICATION/JSON; charset=utf-8'))).toBe('valid')
    expect(await check(options, type('application/avro'))).toBe('valid')
    expect(await check(options, type('text/plain'))).toMatchObject({ message: expect.stringContaining('text/plain') })
    expect(await check(options, type('application/vnd.acme+json'))).toBeInstanceOf(Error)
  })

  // S33
  it('requires a header, and takes any type when none is named', async () => {
    expect(await check({}, {})).toMatchObject({ message: 'header "content-type" is missing' })
    expect(await check({}, type(''))).toBeInstanceOf(Error)
    expect(await check({}, type('anything'))).toBe('valid')
    expect(await check(undefined, type('anything'))).toBe('valid')
  })

  // S33
  it('reads another header when asked to', async () => {
    expect(await check({ header: 'ce-type' }, { headers: { 'ce-type': 'order.placed' } })).toBe('valid')
    expect(await check({ header: 'ce-type' }, type('application/json'))).toBeInstanceOf(Error)
  })

  // S33
  it('refuses an empty payload first, when one is required', async () => {
    expect(await check({ requireValue: true }, {})).toMatchObject({ message: 'empty payload' })
    expect(await check({ requireValue: true }, { ...type('a/b'), value: 'x' })).toBe('valid')
    expect(await check({ requireValue: false }, type('a/b'))).toBe('valid')
  })

  it.each<[unknown, string]>([
    [{ allowed: 'application/json' }, 'contentTypeValidator.allowed'],
    [{ allowed: [''] }, 'contentTypeValidator.allowed'],
    [{ header: '' }, 'contentTypeValidator.header'],
    [{ requireValue: 1 }, 'contentTypeValidator.requireValue'],
    [{ allow: [] }, '"allow" is not an option'],
  ])('refuses %j by name', (options, text) => {
    expect(() => contentTypeValidator(options as never)).toThrow(text)
  })
})

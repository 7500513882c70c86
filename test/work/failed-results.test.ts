import { describe, expect, it } from 'vitest'
import { defineWork, PoisonError, type WorkEvent, WorkFailedError } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

class PaymentError extends Error {
  override readonly name = 'PaymentError'
  readonly code = 'CARD_DECLINED'
}

const charge = defineWork('charge', () => {
  const reset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
  throw new PoisonError('the charge failed', { cause: new PaymentError('declined', { cause: reset }) })
})

describe.each(GROUNDS)('the rejection of a result (%s)', (ground) => {
  it('is an error with the item, and with the error of its handler as cause', async () => {
    const events: WorkEvent[] = []
    const { w, until, another } = world(ground, { work: [charge], onEvent: (event) => events.push(event) })
    const handle = w.enqueue(charge({}))
    const error = await until(handle.result().catch((reason: unknown) => reason))

    expect(error).toBeInstanceOf(WorkFailedError)
    expect(error).toMatchObject({
      name: 'WorkFailedError',
      code: 'WORK_FAILED',
      message: 'PoisonError: the charge failed',
      itemId: handle.id,
      type: 'charge',
      ending: 'aborted',
    })
    const failed = events.find((event) => event.kind === 'failed')
    expect(failed).toMatchObject({ detail: { name: 'PoisonError', cause: { code: 'CARD_DECLINED' } } })
    expect(failed?.kind === 'failed' && failed.detail?.stack).toContain('failed-results.test')
    if (!w.capabilities.inspect) return
    const { cause } = error as { readonly cause: Error & { readonly cause: Error & { readonly cause: Error } } }
    expect([cause.name, cause.message]).toEqual(['PoisonError', 'the charge failed'])
    expect(cause.stack).toMatch(/^PoisonError: the charge failed\n +at .*failed-results\.test/)
    expect(cause.cause).toMatchObject({ name: 'PaymentError', message: 'declined', code: 'CARD_DECLINED' })
    expect(cause.cause.cause).toMatchObject({ message: 'socket hang up', code: 'ECONNRESET' })

    const elsewhere = another({ work: [charge], autoStart: false })
    await expect(until(elsewhere.handle(charge, handle.id).result())).rejects.toMatchObject({
      code: 'WORK_FAILED',
      itemId: handle.id,
      class: 'poison',
      cause: { message: 'the charge failed', cause: { code: 'CARD_DECLINED' } },
    })
    await until(elsewhere.stop())
  })

  it('gives a handler that lets it through the class of the item that died, and repeats no name', async () => {
    const parent = defineWork(
      'parent',
      (depth: number): Promise<unknown> =>
        depth === 0 ? w.enqueue(charge({})).result() : w.enqueue(parent(depth - 1)).result(),
    )
    const { w, until } = world(ground, { work: [charge, parent] })
    const handle = w.enqueue(parent(2))
    await expect(until(handle.result())).rejects.toMatchObject({ message: 'PoisonError: the charge failed' })
    if (w.capabilities.inspect) expect((await until(w.states([handle.id])))[0]).toMatchObject({ attempt: 1 })
  })

  it('has no cause where no handler failed', async () => {
    const never = defineWork('never', () => 1)
    const { w, until } = world(ground, { work: [never], autoStart: false })
    const handle = w.enqueue(never({}), { delay: 60_000 })
    await until(handle.cancel('not needed'))
    const error = await until(handle.result().catch((reason: unknown) => reason))
    expect(error).toMatchObject({ code: 'WORK_FAILED', ending: 'cancelled', itemId: handle.id })
    expect(error).not.toHaveProperty('cause')
  })

  it('is no unhandled rejection when its item dies while a test moves the clock', async () => {
    const unhandled: unknown[] = []
    const hear = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', hear)
    const { w, clock } = world(ground, { work: [charge] })
    const result = w.enqueue(charge({})).result()
    await clock.advance(10_000)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', hear)
    expect(unhandled).toEqual([])
    await expect(result).rejects.toThrow('the charge failed')
  })
})

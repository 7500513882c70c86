import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineBatchWork } from '../../../src/index.js'
import { GROUNDS, gate, world } from '../support.js'

describe.each(GROUNDS)('the controls of batched work, on %s ports', (ground) => {
  it('a runTimeout ends the whole batch, though its handler goes on, and each item counts a failed attempt', async () => {
    const sizes: number[] = []
    const stuck = defineBatchWork('stuck', {
      size: 3,
      maxWait: 20,
      runTimeout: 200,
      retry: { attempts: 2, base: 1, jitter: 0 },
      run: (inputs: readonly number[]) => {
        sizes.push(inputs.length)
        return new Promise<number[]>(() => undefined)
      },
    })
    const { w, until, events } = world(ground, { work: [stuck] })
    const handles = [1, 2, 3].map((n) => w.enqueue(stuck(n)))

    for (const handle of handles) await expect(until(handle.result())).rejects.toThrow('runTimeout of 200 ms')
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(6)
    expect(events.filter((event) => event.kind === 'failed' && event.willRetry)).toHaveLength(3)
  })

  it('a cancel of one item counts when the batch ends, and leaves the others', async () => {
    const begun = gate()
    const end = gate()
    const together = defineBatchWork('together', {
      size: 2,
      maxWait: 20,
      run: async (inputs: readonly number[]) => {
        begun.open()
        await end.promise
        return inputs.map((n) => n * 10)
      },
    })
    const { w, until, clock } = world(ground, { work: [together] })
    const [a, b] = [w.enqueue(together(1)), w.enqueue(together(2))]
    const result = expect(a.result()).rejects.toThrow('cancelled: not this one')
    await until(begun.promise)
    await until(a.cancel('not this one'))
    await clock.advance(50)
    end.open()

    await until(result)
    expect(await until(b.result())).toBe(20)
  })

  it('an input that its schema refuses when it runs is poison for its item only, and the others get what it returned', async () => {
    const seen: unknown[] = []
    const config = {
      size: 2,
      maxWait: 20,
      run: (inputs: readonly { n: number }[]) => {
        seen.push(...inputs)
        return inputs.map(({ n }) => n)
      },
    }
    const loose = defineBatchWork('checked', config)
    const strict = defineBatchWork('checked', {
      ...config,
      input: z.object({ n: z.number(), unit: z.string().default('ms') }),
    })
    const { w, until, another } = world(ground, { work: [loose], autoStart: false })
    const [good, bad] = [w.enqueue(loose({ n: 1 })), w.enqueue(loose({ n: 'x' } as never))]
    await until(Promise.all([good.accepted(), bad.accepted()]))
    another({ work: [strict] })

    expect(await until(good.result())).toBe(1)
    await expect(until(bad.result())).rejects.toThrow('The input of work "checked" is not valid: n: ')
    expect(seen).toEqual([{ n: 1, unit: 'ms' }])
  })

  it('a cancel that arrives while the schema of a neighbour is checked counts, and time runs from then', async () => {
    let answer = gate()
    const asked = gate()
    const seen: (readonly number[])[] = []
    let isSlow = false
    const schema: StandardSchemaV1<number, number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value) => {
          if (isSlow && value === 2) {
            asked.open()
            await answer.promise
          }
          return { value: Number(value) }
        },
      },
    }
    const together = defineBatchWork('together', {
      size: 2,
      maxWait: 20,
      input: schema,
      retry: { attempts: 1 },
      run: (inputs: readonly number[]) => {
        seen.push(inputs)
        return inputs.map((n) => n * 10)
      },
    })
    const { w, until, clock } = world(ground, { work: [together] })
    const [a, b] = [w.enqueue(together(1), { delay: 10 }), w.enqueue(together(2), { delay: 10 })]
    const cancelled = expect(a.result()).rejects.toThrow('cancelled: not this one')
    await until(Promise.all([a.accepted(), b.accepted()]))
    isSlow = true
    await until(asked.promise)
    expect(await until(a.cancel('not this one'))).toMatchObject({ kind: 'requested' })
    await clock.advance(50)
    answer.open()

    await until(cancelled)
    expect(await until(b.result())).toBe(20)
    seen.length = 0
    answer = gate()
    isSlow = false
    const late = [1, 2].map((n) => w.enqueue(together(n), { runTimeout: 100, delay: 10 }))
    const timedOut = late.map((handle) => expect(handle.result()).rejects.toThrow('runTimeout of 100 ms'))
    await until(Promise.all(late.map((handle) => handle.accepted())))
    isSlow = true

    await until(Promise.all(timedOut), 2_000)
    expect(seen).toEqual([])
  })
})

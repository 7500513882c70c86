import { z } from 'zod'
import type { CancelResult, InputOf, SelfOf, WorkOptions } from '../../src/index.js'
import type { WorkSystem } from '../../src/work/create-work.js'
import { defineWork } from '../../src/work/define/define-work.js'
import type { InputForName } from '../../src/work/define/work.js'
import type { Equal, Expect } from './equal.js'

const Order = z.object({
  id: z.string(),
  at: z.iso.datetime().transform((text) => new Date(text)),
  qty: z.number().default(1),
})

/** The handler gets the output of the schema, without saying so; whoever enqueues gives its input. */
const charge = defineWork(
  'charge',
  (order, ctx) => {
    const check: Expect<Equal<typeof order, { id: string; at: Date; qty: number }>> = true
    return ctx.result(check && order.at.getTime())
  },
  {
    input: Order,
    runTimeout: 1_000,
    options: (order) => {
      const check: Expect<Equal<typeof order, { id: string; at: string; qty?: number | undefined }>> = true
      return check ? { priority: order.qty ?? 1 } : undefined
    },
    logContext: (order) => {
      const check: Expect<Equal<typeof order, { id: string; at: Date; qty: number }>> = true
      return { check }
    },
  },
)
export type C1 = Expect<Equal<InputOf<typeof charge>, { id: string; at: string; qty?: number | undefined }>>
export type C2 = Expect<Equal<SelfOf<typeof charge>, number>>
export type C3 = Expect<Equal<InputForName<readonly [typeof charge], 'charge'>, InputOf<typeof charge>>>

/** An annotated handler must take what the schema makes. */
export const annotated = defineWork('annotated', (n: number, ctx) => ctx.result(n), {
  input: z.coerce.number<string>(),
})
export type C4 = Expect<Equal<InputOf<typeof annotated>, string>>
// @ts-expect-error the handler wants a string, the schema gives a number
export const wrong = defineWork('wrong', (text: string, ctx) => ctx.result(text), { input: z.number() })

declare const w: WorkSystem<readonly [typeof charge]>
export async function enqueues(): Promise<void> {
  void w.enqueue('charge', { id: 'a', at: '2026-01-01T00:00:00Z' })
  // @ts-expect-error a Date is what the schema makes, not what it takes
  void w.enqueue('charge', { id: 'a', at: new Date() })
  // @ts-expect-error id is missing
  charge({ at: '2026-01-01T00:00:00Z' })
  const handle = w.enqueue(charge({ id: 'a', at: '2026-01-01T00:00:00Z' }), {
    runTimeout: 5,
    strictDeadline: true,
    tags: ['a'],
  })
  const answer = await handle.cancel('why')
  const check: Expect<Equal<typeof answer, CancelResult>> = true
  void check
  for await (const value of handle.watchProgress()) {
    const isUnknown: Expect<Equal<typeof value, unknown>> = true
    void isUnknown
  }
}

export async function pauses(): Promise<void> {
  await w.pause({ type: charge })
  await w.pause({ queue: 'bulk' })
  // @ts-expect-error one or the other
  await w.resume({ queue: 'bulk', type: 'charge' })
  // @ts-expect-error neither
  await w.resume({})
}

/** Options without a schema may stand in a variable of their own. */
const shared: WorkOptions<number> = { tags: ['a'], runTimeout: 5 }
export const sharing = defineWork('sharing', (n: number, ctx) => ctx.result(n), shared)
export type C5 = Expect<Equal<InputOf<typeof sharing>, number>>

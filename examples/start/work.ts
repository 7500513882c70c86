import { defineWork, type Work, WorkDelayError } from 'millrace'
import { bake, findStreet, msUntilVan, pay } from './outside.js'

/** What the lines of an order come to. */
export interface Bill {
  readonly lines: readonly string[]
  readonly cents: number
}

interface Order {
  readonly customer: string
  readonly lines: Readonly<Record<string, number>>
}

/** The fan-out: one item for each line. Its own result is nothing; the value of its group is the bill. */
export const bakeOrder = defineWork('bake-order', ({ customer, lines }: Order, ctx) =>
  ctx.queue(
    Object.entries(lines).map(([bread, count]) =>
      named(bakeLine({ bread, count }), `${customer}'s ${count} × ${bread}`),
    ),
  ),
)

/** The fan-in: every line adds itself to the bill, whichever is baked first. */
export const bakeLine = defineWork('bake-line', async ({ bread, count }: { bread: string; count: number }, ctx) => {
  const price = await bake(bread, count)
  const line: Bill = { lines: [`${count} × ${bread}`], cents: count * price }
  return ctx.result(line, {
    append: (bill) => ({
      lines: [...(bill?.lines ?? []), ...line.lines].sort(),
      cents: (bill?.cents ?? 0) + line.cents,
    }),
  })
})

/** Flaky: the terminal answers 503 at first. Retryable, so it is tried again with a growing pause. */
export const charge = defineWork(
  'charge',
  async ({ customer, cents }: { customer: string; cents: number }, ctx) =>
    ctx.result(await pay(customer, cents, ctx.signal)),
  { retry: { attempts: 4, base: 250, jitter: 0.2 }, priority: 10 },
)

/** Poison: a street that does not exist will not exist at the next attempt. Parked at once, with the reason. */
export const printLabel = defineWork('print-label', ({ street }: { customer: string; street: string }, ctx) =>
  ctx.result(`label for ${findStreet(street)}`),
)

/** Deferred: the van is not there yet. Waiting for it is no failure and costs no attempt. */
export const deliver = defineWork('deliver', ({ customer }: { customer: string }, ctx) => {
  const waitMs = msUntilVan()
  if (waitMs > 0) throw new WorkDelayError({ delay: Math.min(waitMs, 800) }, 'the van is not back yet')
  return ctx.result(`${customer}'s bread is on its way`)
})

const names = new Map<string, string>()

/** Remembers what to call an item when something happens to it. */
export function named<W extends Work>(work: W, name: string): W {
  names.set(work.id, name)
  return work
}

/** The name of an item, or its type where it has none. */
export function nameOf({ id, type }: { readonly id: string; readonly type: string }): string {
  return names.get(id) ?? type
}

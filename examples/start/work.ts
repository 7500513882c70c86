import { defineWork, type Work, WorkDelayError } from 'millrace'
import { callTerminal, findStreet, type Outside, priceOf } from './outside.js'
import { paced, takes } from './pace.js'
import { type Order, totalOf } from './plan.js'

/** What the lines of an order come to. */
export interface Bill {
  readonly lines: readonly string[]
  readonly cents: number
}

/**
 * The work types of the bakery, on the world outside. A process can die between any two lines of a handler, and then the item runs
 * again from the first. What it changes inside Millrace happens once all the same; for what it changes outside, each says how.
 */
export function bakeryWork(outside: Outside) {
  /** Flaky: the terminal answers 503 at first. Retryable, so it is tried again with a growing pause. */
  const charge = defineWork(
    'charge',
    async ({ customer, cents }: { customer: string; cents: number }, ctx) => {
      await takes(250, ctx.signal)
      callTerminal(ctx.attempt)
      // Once per item: its id is the same on every attempt and after every crash.
      outside.once(ctx.id, { kind: 'payment', subject: customer, amount: cents })
      // Killed in here, the customer has paid and nobody knows: the next run asks again, and the bank says that it has been done.
      await takes(400, ctx.signal)
      return ctx.void()
    },
    { priority: 10 },
  )

  /** Poison: a street that does not exist will not exist at the next attempt. Dead-lettered immediately, with the reason. */
  const printLabel = defineWork(
    'print-label',
    async ({ customer, street }: Pick<Order, 'customer' | 'street'>, ctx) => {
      findStreet(street)
      outside.once(ctx.id, { kind: 'label', subject: customer, amount: 1 })
      await takes(200, ctx.signal)
      return ctx.void()
    },
  )

  /** Deferred: the van is not there yet. Waiting for it is no failure and costs no attempt. */
  const deliver = defineWork('deliver', async ({ customer }: { customer: string }, ctx) => {
    const waitMs = outside.msUntilVan(paced(6_000))
    // Overwriting can be repeated as it is, as long as nobody writes late: the fence sees to that.
    outside.write(customer, waitMs > 0 ? 'waits for the van' : 'on its way', ctx.fence ?? 0)
    if (waitMs > 0) throw new WorkDelayError({ delay: Math.min(waitMs, paced(3_000)) }, 'the van is not back yet')
    await takes(200, ctx.signal)
    return ctx.void()
  })

  /** The fan-in as a value: every line adds itself to the bill, whichever is baked first. */
  const bakeLine = defineWork('bake-line', async ({ bread, count }: { bread: string; count: number }, ctx) => {
    await takes(250 * count, ctx.signal)
    const line: Bill = { lines: [`${count} × ${bread}`], cents: count * priceOf(bread) }
    return ctx.result(line, {
      append: (bill) => ({
        lines: [...(bill?.lines ?? []), ...line.lines].sort(),
        cents: (bill?.cents ?? 0) + line.cents,
      }),
    })
  })

  /** The fan-out: one item for each line, and, when all of them have succeeded, what comes next. All of it is one commit. */
  const bakeOrder = defineWork('bake-order', (order: Order, ctx) => {
    const { customer, street, lines } = order
    const id = `order/${customer}`
    return ctx
      .queue(Object.entries(lines).map(([bread, count]) => withId(bakeLine({ bread, count }), `${id}/bake/${bread}`)))
      .next([
        withId(charge({ customer, cents: totalOf(order) }), `${id}/charge`),
        withId(printLabel({ customer, street }), `${id}/label`),
        withId(deliver({ customer }), `${id}/deliver`),
      ])
  })

  /** What the schedule asks for. */
  const feedSourdough = defineWork('feed-sourdough', async (_: null, ctx) => {
    outside.once(ctx.id, { kind: 'feed', subject: ctx.id, amount: 1 })
    await takes(300, ctx.signal)
    return ctx.void()
  })

  return { bakeOrder, bakeLine, charge, printLabel, deliver, feedSourdough }
}

/** With an id of our own, so enqueuing it again is the same item, and people can ask for it by name. */
export function withId<W extends Work>(work: W, id: string): W {
  return { ...work, id }
}

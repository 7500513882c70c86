import { type AnyWorkBuilder, defineBatchWork, defineWork } from '../../src/index.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import type { SimulatedProcess } from '../../src/testing/simulation/process.js'

interface Order {
  readonly id: string
}

type Naive = (process: SimulatedProcess, charge: (order: Order) => void) => readonly AnyWorkBuilder[]

/** Handlers as a newcomer writes them, each of which charges an order again when it runs again. `charge` is the effect. */
export const NAIVE_HANDLERS: Readonly<Record<string, Naive>> = {
  'through process.call': (process, charge) => [
    defineWork('charge', async (order: Order) => {
      await process.call('bank', () => charge(order))
    }),
  ],
  'without any await': (_process, charge) => [defineWork('charge', (order: Order) => charge(order))],
  'before an await': (process, charge) => [
    defineWork('charge', async (order: Order) => {
      charge(order)
      await process.clock.sleep(50)
    }),
  ],
  'after an await': (process, charge) => [
    defineWork('charge', async (order: Order) => {
      await process.clock.sleep(50)
      charge(order)
    }),
  ],
  'in a child': (process, charge) => {
    const pay = defineWork('pay', async (order: Order) => {
      await process.clock.sleep(5)
      charge(order)
    })
    return [defineWork('charge', (order: Order, ctx) => ctx.queue(pay(order))), pay]
  },
  'in a batch': (process, charge) => [
    defineBatchWork('charge', {
      size: 5,
      maxWait: 20,
      run: async (orders: readonly Order[]) => {
        for (const order of orders) charge(order)
        await process.clock.sleep(5)
        return orders.map(({ id }) => id)
      },
    }),
  ],
}

/** So many orders, each of which must be charged once at most. */
export function charging(naive: Naive, orders: number, options: Omit<SimulationOptions, 'setup'>): SimulationOptions {
  return {
    ...options,
    setup: (world) => {
      const charged: string[] = []
      return {
        work: (process) => naive(process, ({ id }) => charged.push(id)),
        run: async () => {
          for (let n = 0; n < orders; n += 1) await world.enqueue('charge', { id: `order ${n}` })
        },
        check: () => world.expect(new Set(charged).size === charged.length, 'no order is charged twice'),
      }
    },
  }
}

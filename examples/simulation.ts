import { defineWork } from 'millrace'
import { simulate } from 'millrace/testing'

const report = await simulate({
  seeds: 50,
  setup: (world) => {
    const charged = new Set<string>()
    return {
      work: (process) => [
        defineWork(
          'charge',
          async (order: { id: string }, ctx) => {
            await process.call('bank', () => charged.add(order.id))
            return ctx.result(order.id)
          },
          { retry: { attempts: 20 } },
        ),
      ],
      run: async () => {
        for (let n = 0; n < 10; n += 1) await world.enqueue('charge', { id: `order ${n}` })
      },
      check: () => world.expect(charged.size === 10, 'every order is charged'),
    }
  },
})
console.log(`${report}`)

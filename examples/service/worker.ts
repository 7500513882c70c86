// The worker: charges orders, at most two of a tenant at once, and reports every night.
import { setTimeout as sleep } from 'node:timers/promises'
import { createWork, defineWork, InvalidForStateError, type WorkContext } from 'millrace'
import { openShop } from './database.js'
import { allCharges, type Order, report } from './jobs.js'

const shop = await openShop(process.env['DATABASE'] ?? 'shop.db')
const bankMs = Number(process.env['BANK_MS'] ?? 100)

async function charge(order: Order, ctx: WorkContext) {
  console.log(`begin ${order.tenant} ${order.id}`)
  try {
    await sleep(bankMs, undefined, { signal: ctx.signal }) // the bank takes its time
    if (order.cents > 500_000) throw new InvalidForStateError('the card is declined')
    await shop.charge(ctx.id, order) // keyed: a job that runs again charges nothing again
    return { receipt: `receipt for ${order.id}` }
  } finally {
    console.log(`end ${order.tenant} ${order.id}`)
  }
}

const w = createWork({
  backend: shop.backend,
  keepAlive: true,
  visibility: 5_000, // a worker that died gives its jobs back after five seconds
  work: [
    defineWork(report, async () => ({ charged: await shop.countCharges() })),
    // Two of a tenant at once in this process. Each further worker process adds two: no limit counts over a fleet.
    ...allCharges.map((contract) => defineWork(contract, charge, { concurrency: 2 })),
  ],
})

w.schedule({
  name: 'nightly-report',
  cron: process.env['REPORT_CRON'] ?? '0 3 * * *',
  tz: 'Europe/Berlin',
  run: ({ at }) => report({ day: new Date(at).toISOString() }),
})
console.log('ready')

process.once('SIGTERM', async () => {
  await w.stop()
  await shop.close()
})

// A shop whose orders are writs: each has to be charged, labelled and shipped. One meets a printer that is jammed, one a card that
// is declined, which a person sets right. Everything is in one SQLite file. Run it with: npx tsx examples/fulfilment.ts
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openOps } from 'millrace/ops'
import { Outside } from './fulfilment/outside.js'
import { openShop, startShop } from './fulfilment/shop.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-shop-'))
const address = join(folder, 'shop.db')
const outside = join(folder, 'outside')

// Usually another process, on as many machines as are needed.
const { guild, backend } = await startShop({ address, outside })

// And this is the web server: it knows the database, and neither steps nor plugins.
const web = await openShop(address)
const post = (orderId: string, trouble?: string) =>
  web.post({ type: 'order', title: `Order ${orderId}`, body: JSON.stringify({ orderId, ...(trouble && { trouble }) }) })
const smooth = await post('o-1')
const jammed = await post('o-2', 'jam')
const declined = await post('o-3', 'declined')

for (const { id } of [smooth, jammed, declined]) {
  const { title, phase, resolution } = await guild.ended(id)
  const { attempts, cap } = await guild.retry.describe(id)
  console.log(
    `${title} is ${phase} after ${attempts} of at most ${cap} rigs${phase === 'stuck' ? `: ${resolution}` : ''}`,
  )
}

console.log('A person asks the customer for another card, and retries the order.')
writeFileSync(join(outside, 'new-card'), '')
const ops = openOps(backend, { stacks: guild.stacks })
await ops.retryWrit(declined.id, { who: 'ada', why: 'the customer gave another card' })
const { title, phase } = await guild.ended(declined.id)
console.log(`${title} is ${phase}`)
for (const { who, what, why } of await ops.log())
  console.log(`${who}: ${what.replace(declined.id, 'w-…')}, because ${why}`)

const done = new Outside(outside).entries().filter(({ what }) => what === 'done')
for (const service of ['bank', 'printer', 'carrier'])
  console.log(`${service}: ${done.filter((entry) => entry.service === service).length} for 3 orders`)

await web.close()
await guild.stop()
await backend.close()
rmSync(folder, { recursive: true })

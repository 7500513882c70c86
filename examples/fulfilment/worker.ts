// A worker of the shop, until it is told to stop: npx tsx examples/fulfilment/worker.ts <address> <outside> [takesMs] [visibility]
import { startShop } from './shop.js'

const [, , address = './shop.db', outside = './outside', takesMs = '20', visibility = '30000'] = process.argv
const { guild, backend } = await startShop({
  address,
  outside,
  takesMs: Number(takesMs),
  visibility: Number(visibility),
})
console.log('ready')
process.once('SIGTERM', async () => {
  await guild.stop()
  await backend.close()
})

// What a web server does with an order: it posts a writ and answers with its id. npx tsx examples/fulfilment/web.ts <address> <orders>
import { type Order, openShop } from './shop.js'

const [, , address = './shop.db', orders = '[]'] = process.argv
const shop = await openShop(address)
for (const order of JSON.parse(orders) as Order[]) {
  const { id } = await shop.post({ type: 'order', title: `Order ${order.orderId}`, body: JSON.stringify(order) })
  console.log(`${order.orderId} ${id}`)
}
await shop.close()

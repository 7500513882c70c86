// One of several processes that raise the versions of a few documents, each by one in a transaction, until it is killed.
// Usage: versions.ts <address> <documents>
import { storeAt } from './store.js'

const [, , address = '', documents = ''] = process.argv
const stacks = await storeAt(address)
await stacks.declare('shop', { orders: {} })
await stacks.seal()
const book = stacks.book<{ id: string; n: number }>('shop', 'orders')
console.log('ready')
for (;;) {
  const id = `v-${Math.floor(Math.random() * Number(documents))}`
  await stacks.transaction(
    async () => {
      const found = await book.get(id)
      await book.put({ id, n: (found?.n ?? 0) + 1 })
    },
    { retries: 1_000 },
  )
}

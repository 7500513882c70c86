// A process that handles a durable watcher, and writes down the events that it gets, until it is killed.
// Usage: listener.ts <address> <file>
import { appendFileSync } from 'node:fs'
import { storeAt } from './store.js'

const [, , address = '', file = ''] = process.argv
const stacks = await storeAt(address, { watcherLeaseMs: 300 })
await stacks.declare('shop', { orders: {} })
stacks.watch<{ id: string; n: number }>(
  'shop',
  'orders',
  async (event) => {
    if (event.type === 'delete') return
    // Before the handler returns, and hence before the progress is stored: what is not in the file was not handled.
    appendFileSync(file, `${process.pid} ${event.entry.id} ${event.entry.n}\n`)
    await new Promise((resolve) => setImmediate(resolve))
  },
  { durable: 'listener' },
)
await stacks.seal()
console.log('ready')
setInterval(() => undefined, 1_000)

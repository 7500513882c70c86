// One of several processes that move money between accounts until its time is over, and checks the sum meanwhile.
// Prints what it did as JSON. Usage: transfer.ts <address> <accounts> <ms>
import { storeAt } from './store.js'

const [, , address = '', accounts = '', ms = ''] = process.argv
const stacks = await storeAt(address)
await stacks.declare('bank', { accounts: {}, log: {} })
await stacks.seal()
const book = stacks.book<{ id: string; balance: number }>('bank', 'accounts')
const log = stacks.book<{ id: string; from: string; to: string; amount: number }>('bank', 'log')
const until = Date.now() + Number(ms)
const pick = () => String(Math.floor(Math.random() * Number(accounts)))
const counts = { moved: 0, undone: 0, sums: 0, wrong: 0 }

while (Date.now() < until) {
  const [from, to, amount] = [pick(), pick(), 1 + Math.floor(Math.random() * 10)]
  const isUndone = Math.random() < 0.2
  try {
    await stacks.transaction(
      async () => {
        if (from === to) return
        const [giver, taker] = [await book.get(from), await book.get(to)]
        await book.patch(from, { balance: giver!.balance - amount })
        await book.put({ id: to, balance: taker!.balance + amount })
        await log.put({ id: `${process.pid}-${counts.moved}-${counts.undone}`, from, to, amount })
        if (isUndone) throw new Error('undone')
      },
      { retries: 1_000 },
    )
    if (from !== to) counts.moved += 1
  } catch (error) {
    if ((error as Error).message !== 'undone') throw error
    counts.undone += 1
  }
  // One statement is one snapshot: a sum that is not exact is a dirty or a torn read.
  const sum = (await book.list()).reduce((total, { balance }) => total + balance, 0)
  counts.sums += 1
  if (sum !== 100 * Number(accounts)) counts.wrong += 1
}
await stacks.close()
console.log(JSON.stringify(counts))

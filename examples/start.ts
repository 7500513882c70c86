// What `npm start` runs: the morning of a bakery, on the memory backend with its queue on a file. Typed work, a fan-out
// whose parts add up, a card terminal that fails at first, a van that is late, an address that does not exist.
// It ends by itself when everything has settled. The parts are in examples/start:
//   work.ts     the work types and their handlers: the part that you would write
//   outside.ts  the world they meet: a terminal, a van, a street map
//   story.ts    events as lines that a person can follow
//   tables.ts   what became of everything
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWork, memoryBackend, priorityDoer } from 'millrace'
import { openStory } from './start/story.js'
import { printBills, printParked, printTypes } from './start/tables.js'
import { type Bill, bakeLine, bakeOrder, charge, deliver, named, printLabel } from './start/work.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-start-'))
const file = join(folder, 'bakery.queue')
const types = [bakeOrder, bakeLine, charge, deliver, printLabel] as const
const story = openStory()

console.log('A morning in the bakery. Its work stands on a file, so it would outlive this process:')
console.log(`  ${file}\n`)

const backend = memoryBackend({ queue: { file } })
const work = createWork({
  backend,
  work: types,
  doer: priorityDoer({ max: 2 }), // two bakers
  onEvent: story.tell,
  onError: (error, phase) => console.error(`  trouble (${phase}):`, error),
})

// An interrupt lets what runs finish, and leaves the rest on the file.
let isInterrupted = false
const interrupted = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isInterrupted = true
      resolve()
    })
  }
})

const bills = new Map<string, Bill>()
await Promise.race([morning(), interrupted])
await work.stop()
await backend.close()

if (isInterrupted) {
  console.log(`\nInterrupted. ${backend.queue.size()} items are still on the file, for whoever opens it next: ${file}`)
  process.exitCode = 130
} else {
  printBills(bills)
  printTypes(work.metrics, types)
  // From the file, by a backend of its own: what another process would find.
  printParked(memoryBackend({ queue: { file } }).queue.dead, story)
  rmSync(folder, { recursive: true })
  console.log(
    '\nEverything has settled, so this ends here; with or without --once, as there is no page to look at yet.',
  )
}

async function morning(): Promise<void> {
  const orders = [
    { customer: 'Ada', street: 'Mill Lane 1', lines: { rye: 2, pretzel: 10, cake: 1 } },
    { customer: 'Grace', street: 'Nowhere 0', lines: { wheat: 3, pretzel: 4 } },
  ]
  await Promise.all(
    orders.map(async ({ customer, street, lines }) => {
      // Awaiting the handle waits for every line of the order; what the lines appended is its value.
      const bill = await work.enqueue(named(bakeOrder({ customer, lines }), `${customer}'s order`))
      bills.set(customer, bill)
      // Started side by side; each ends in its own time, or is parked. A group never rejects because an item died.
      await Promise.all([
        work.enqueue(named(charge({ customer, cents: bill.cents }), `${customer}'s card`)).group(),
        work.enqueue(named(printLabel({ customer, street }), `${customer}'s label`)).group(),
        work.enqueue(named(deliver({ customer }), `${customer}'s delivery`)).group(),
      ])
    }),
  )
}

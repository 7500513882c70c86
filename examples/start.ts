// What `npm start` runs: a day in a bakery, on embedded SQLite. Typed work, a fan-out whose parts add up, a card terminal that fails at
// first, a van that is late, an address that does not exist and a schedule; then a guild whose writs are retried by themselves.
// `npm start` stays up when the story is over, with the schedule going on; `npm start -- --once` ends with its tables.
// Kill it with -9 whenever you like and start it again: it goes on where it was, and nothing outside happens twice.
// The parts are in examples/start:
//   plan.ts      what is ordered, and what must have become of it in the end
//   work.ts      the work types and their handlers: the part that you would write
//   guild.ts     the writs, and the engines that execute them: likewise
//   outside.ts   the world they meet, and how an effect there happens once
//   books.ts     what is read from the files, held against the plan
//   the rest     where the files are, lines and tables
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createWork, defaultCodec, MillraceError } from 'millrace'
import type { SpiderRunning } from 'millrace/guild/spider'
import { openOps } from 'millrace/ops'
import { sqliteBackend } from 'millrace/sqlite'
import { areOrdersDone, type BookedItem, type Books, isOpen, isSettled, problemsOf } from './start/books.js'
import { openGuild, postWrits, standOfWrits } from './start/guild.js'
import { print } from './start/lines.js'
import { canShowOverview, liveOverview } from './start/live-overview.js'
import { Outside } from './start/outside.js'
import { paced } from './start/pace.js'
import { FEEDS, ORDERS } from './start/plan.js'
import { openRunFolder } from './start/run-folder.js'
import { openStory } from './start/story.js'
import { printTables } from './start/tables.js'
import { type Bill, bakeryWork, withId } from './start/work.js'

const isOnce = process.argv.includes('--once')
const folder = openRunFolder(process.env['MILLRACE_START_DIR'] || '.millrace')

// The first Ctrl-C hands back what runs; the second does not wait for that, which is as safe as any kill.
const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => (interrupt.signal.aborted ? process.exit(130) : interrupt.abort()))
}
// A closed pipe (`| head`) does not stop the work.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const story = openStory()
const outside = new Outside(folder.outside)
const backend = sqliteBackend({ file: folder.work })
const ops = openOps(backend)
await greet().catch(giveUp)
const bakers = await openGuild(folder.work, outside, story).catch(giveUp)
const { bakeOrder, feedSourdough, ...parts } = bakeryWork(outside)
const work = createWork({
  backend,
  work: [bakeOrder, feedSourdough, ...Object.values(parts), bakers.spider.engineWork],
  // Attempts beyond those that the story needs are for kills: a run that died with its process counts towards the limit from the
  // third on, so an item cannot crash its process forever.
  retry: { attempts: 20, base: paced(1_200), jitter: 0.2 },
  // A lease of three seconds, so what a killed process held is free again soon. Ordinary work is better off with more.
  visibility: 3_000,
  stopDrain: 1_000,
  keepCompleted: 30 * 86_400_000,
  keepAlive: true,
  autoStart: false,
  onEvent: story.tell,
  onError: (error, phase) =>
    story.trouble(`trouble (${phase}): ${error instanceof Error ? error.message : String(error)}`),
})

let planning: SpiderRunning | undefined
try {
  await begin()
  process.exitCode = await untilTheEnd()
} catch (error) {
  giveUp(error)
} finally {
  await handBack()
  await bakers.guild.shutdown()
  await backend.close()
  outside.close()
}

/** Prints errors that people can fix as one sentence. The next start continues from here. */
function giveUp(error: unknown): never {
  if (!(error instanceof MillraceError)) throw error
  console.error(`\n${error.message}\nTo begin anew, remove ${folder.path}.`)
  process.exit(1)
}

async function greet(): Promise<void> {
  if (!folder.isResumed) {
    print(`A day in the bakery. Its work is in ${folder.path}: kill this, start it again, and it goes on.`)
    print(
      'Three orders come in. The lines of each are baked side by side. When all of them are done, the customer is to be charged, a label printed and the order delivered; some of it goes wrong.\n',
    )
    return
  }
  const items = await readItems()
  const open = items.filter(isOpen)
  const held = open.filter(({ state }) => state === 'active').length
  print(
    `Going on with the day that was begun in ${folder.path}: ${items.length - open.length} items have ended, ${open.length} have not.`,
  )
  const whose = 'held by a process that was killed (free within 3 s), or by one that works beside this one'
  print(held === 0 ? '' : `${held} of them: ${whose}.\n`)
}

/** Enqueues everything under fixed ids, so a later process does not enqueue it again. */
async function begin(): Promise<void> {
  await work.enqueueMany(ORDERS.map((order) => withId(bakeOrder(order), `order/${order.customer}`)))
  // With --once the schedule ends by itself: when the last is about to be fired, there is none after it.
  if (!isOnce || (await feeds()) < FEEDS) {
    work.schedule({
      name: 'sourdough',
      next: async (now) => (isOnce && (await feeds()) + 1 >= FEEDS ? undefined : now + paced(3_000)),
      run: () => feedSourdough(null),
    })
  }
  work.start()
  if ((await bakers.clerk.count()) > 0) planning = bakers.spider.start({ work })
}

/** The second part of the story. A process that begins with it goes on with what was posted. */
async function beginGuild(): Promise<void> {
  print(
    '\nThe orders are done. The bakery is also a guild: it owes bread that takes several steps, any of which may fail. Its words are explained as they come up.\n',
  )
  await postWrits(bakers)
  planning = bakers.spider.start({ work })
}

/** The exit code. */
async function untilTheEnd(): Promise<number> {
  let books = await readBooks()
  while (!isSettled(books)) {
    if (interrupt.signal.aborted) return interrupted()
    if (planning === undefined && areOrdersDone(books.items)) await beginGuild()
    await sleep(250, undefined, { signal: interrupt.signal }).catch(() => undefined)
    books = await readBooks()
  }
  printTables(books, await readBills(), outside.sums())
  const problems = problemsOf(books)
  if (problems.length > 0) {
    console.error(`\nThe books are wrong:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    return 1
  }
  const [items, effects] = [books.items.length, books.effects.length]
  print(`\nThe books are right: ${items} items were accepted and ended as planned, with ${effects} effects, each once.`)
  folder.finish()
  if (isOnce) {
    tellHowToLook()
    return 0
  }
  const end = canShowOverview ? 'In a moment, the live overview comes up; q or Ctrl-C ends it.' : 'Ctrl-C ends it.'
  print(`The schedule goes on feeding the sourdough. ${end}\n`)
  await watch()
  return interrupted()
}

/** Until somebody has seen enough. What would be told meanwhile is in the overview; without a terminal, it is told. */
async function watch(): Promise<void> {
  if (canShowOverview) {
    await sleep(paced(4_000), undefined, { signal: interrupt.signal }).catch(() => undefined)
    story.isMuted = true
    if (await liveOverview(folder.work, interrupt.signal)) return
    story.isMuted = false
  }
  if (!interrupt.signal.aborted) await once(interrupt.signal, 'abort')
}

/** Half a story is a failure to those who asked for all of it, and to nobody else. */
async function interrupted(): Promise<number> {
  await handBack()
  const open = (await readItems()).filter(isOpen).length
  print(`\nInterrupted. ${open} items have not ended; what ran was handed back, and they wait for the next start.`)
  tellHowToLook()
  return isOnce ? 130 : 0
}

/** Nothing is planned or begun any more, and what runs is handed back. */
async function handBack(): Promise<void> {
  await planning?.stop()
  await work.stop()
}

function tellHowToLook(): void {
  console.log('To look at it:')
  console.log(`  export MILLRACE_BACKEND=sqlite:${folder.work}`)
  for (const command of ['overview', 'writs', 'show order/Ada/charge']) console.log(`  npx millrace ${command}`)
}

/** How often the schedule has fired, in this process and in those before it. */
async function feeds(): Promise<number> {
  const counted = (await ops.counts()).filter(({ type }) => type === feedSourdough.type)
  return counted.flatMap(({ counts }) => Object.values(counts)).reduce((sum, count) => sum + count, 0)
}

/** All from the files: this process may have seen only the end of it. */
async function readBooks(): Promise<Books> {
  const [items, writs] = await Promise.all([readItems(), standOfWrits(bakers)])
  return { items, writs, effects: outside.effects(), board: outside.board() }
}

async function readItems(): Promise<readonly BookedItem[]> {
  const items: BookedItem[] = []
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await ops.list({ limit: 500, ...(cursor === undefined ? {} : { cursor }) })
    for (const { envelope, ...item } of page.items) items.push({ ...item, attempt: envelope.attempt })
    cursor = page.next
  }
  return items
}

/** The value of an order's group is its bill, written by the codec of the system. */
async function readBills(): Promise<ReadonlyMap<string, Bill>> {
  const bills = new Map<string, Bill>()
  for (const { customer } of ORDERS) {
    const value = (await ops.item(`order/${customer}`))?.group?.value
    if (value !== undefined) bills.set(customer, defaultCodec.parse(value) as Bill)
  }
  return bills
}

// A waiter. It awaits what it enqueues, results and groups, while the workers die; and writes down the outcomes it got.
import { setTimeout as sleep } from 'node:timers/promises'
import { createWork } from 'millrace'
import { enqueueTruly } from './enqueue-truly.mjs'
import { endOnSignal, openMember } from './member.mjs'
import { Orders, orderedTypes } from './orders.mjs'

const EVERY_MS = 100
const MAX_WAITS = 100
const member = await openMember()
const { settings, log, common } = member
const w = createWork({ ...common, work: orderedTypes, autoStart: false })
const orders = new Orders(settings.name, settings.leaseMs)
/** @type {Set<Promise<unknown>>} */
const waits = new Set()
let turn = 0
let isEnding = false

/** False: it was not accepted. @param {import('./orders.mjs').Order} order @param {'result' | 'group'} what */
async function waitFor(order, what) {
  const sent = await enqueueTruly(w, log, order)
  if (sent === undefined) return false
  orders.accepted(order.id)
  await log.write({ is: 'waits', id: order.id, what })
  const outcome = await sent.handle[what]().then(
    (value) => ({ value }),
    (error) => ({ died: String(error?.code ?? error?.name ?? error) }),
  )
  await log.write({ is: 'outcome', id: order.id, what, ...outcome })
  return true
}

/** There are few of them, so one that was not accepted is made up for. */
async function waitForCrasher() {
  while (!isEnding && !(await waitFor(orders.crasher(), 'result'))) await sleep(EVERY_MS)
}

/** @param {Promise<unknown>} wait */
function begin(wait) {
  const known = wait.finally(() => waits.delete(known))
  waits.add(known)
}

const timers = [
  setInterval(() => {
    if (waits.size >= MAX_WAITS) return
    turn += 1
    if (turn % 5 === 1) begin(waitFor(orders.leaf(), 'result'))
    else if (turn % 5 === 2) begin(waitFor(orders.mint(), 'group'))
    else if (turn % 5 === 3) begin(waitFor(orders.coin(), 'result'))
    else if (turn % 5 === 4 && orders.hasMembers) begin(waitFor(orders.gate(), 'group'))
    else begin(waitFor(orders.fan(), 'group'))
  }, EVERY_MS),
]
if (settings.crasherEveryMs > 0) {
  begin(waitForCrasher())
  timers.push(setInterval(() => begin(waitForCrasher()), settings.crasherEveryMs))
}

await endOnSignal(member, async () => {
  isEnding = true
  for (const timer of timers) clearInterval(timer)
  await Promise.race([Promise.allSettled(waits), sleep(settings.patienceMs)])
  await w.stop()
  // The missing lines show which outcomes it did not get.
  return 0
})

// A producer. It writes down what was accepted, after it was.
import { createWork } from 'millrace'
import { enqueueTruly } from './enqueue-truly.mjs'
import { endOnSignal, openMember } from './member.mjs'
import { Orders, orderedTypes } from './orders.mjs'

const EVERY_MS = 50
const member = await openMember()
const { settings, log, common } = member
const w = createWork({ ...common, work: orderedTypes, autoStart: false })
const orders = new Orders(settings.name, settings.leaseMs)
const each = Math.max(1, Math.round((settings.perSecond * EVERY_MS) / 1_000))
/** @type {Set<Promise<void>>} */
const underWay = new Set()

async function one() {
  const order = orders.next()
  if (await enqueueTruly(w, log, order)) orders.accepted(order.id)
}

const timer = setInterval(() => {
  // A backend that does not answer must not fill this process.
  if (underWay.size > 20 * each) return
  for (let i = 0; i < each; i += 1) {
    const sent = one().finally(() => underWay.delete(sent))
    underWay.add(sent)
  }
}, EVERY_MS)

await endOnSignal(member, async () => {
  clearInterval(timer)
  await Promise.allSettled(underWay)
  await w.stop()
  return 0
})

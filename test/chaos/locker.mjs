// A user of the same PostgreSQL database: it enqueues gates over running items in transactions that stay open for longer than a
// lease, half of which are rolled back; and it locks the rows of running items for a while.
import { setTimeout as sleep } from 'node:timers/promises'
import { createWork } from 'millrace'
import pg from 'pg'
import { machineNow } from './machine-time.mjs'
import { endOnSignal, openMember } from './member.mjs'
import { Orders, orderedTypes } from './orders.mjs'

const AT_ONCE = 3
const MEMBERS = 4
const member = await openMember()
const { settings, log, common } = member
const w = createWork({ ...common, work: orderedTypes, autoStart: false })
const orders = new Orders(settings.name, settings.leaseMs)
let isEnding = false

/** Those that have run for the longest: they still run when the transaction is open. @param {pg.Client} client */
async function runningIds(client) {
  const { rows } = await client.query('select id from millrace.item where state = 2 order by run_at limit $1', [
    MEMBERS,
  ])
  return rows.map(({ id }) => String(id))
}

/** @param {pg.Client} client @param {boolean} isCommitted */
async function gateInTransaction(client, isCommitted) {
  const ids = await runningIds(client)
  if (ids.length === 0) return
  const { id, work, expected } = orders.gate(ids)
  let at = Date.now()
  const from = machineNow()
  try {
    await client.query('begin')
    await w.enqueue(work, { tx: client }).accepted()
    await sleep((1.2 + Math.random() / 2) * settings.leaseMs)
    at = Date.now()
    await client.query(isCommitted ? 'commit' : 'rollback')
  } catch (error) {
    console.error(id, error)
    await log.write({ is: 'unsure', id, at })
    throw error
  } finally {
    await log.write({ is: 'transaction', from, to: machineNow() })
  }
  await log.write(isCommitted ? { is: 'accepted', id, at, ...expected } : { is: 'undone', id })
}

/** @param {pg.Client} client */
async function lockRows(client) {
  const ids = await runningIds(client)
  if (ids.length === 0) return
  await client.query('begin')
  const from = machineNow()
  const { rows } = await client.query('select id from millrace.item where id = any($1) for update skip locked', [ids])
  try {
    await sleep((0.5 + Math.random()) * settings.leaseMs)
    await client.query('rollback')
  } finally {
    await log.write({ is: 'locked', ids: rows.map(({ id }) => id), from, to: machineNow() })
  }
}

/** Goes on over lost connections until SIGTERM. @param {(client: pg.Client, i: number) => Promise<void>} act */
async function again(act) {
  for (let i = 0; !isEnding; ) {
    const client = new pg.Client({ connectionString: settings.address })
    client.on('error', () => {})
    try {
      await client.connect()
      for (; !isEnding; i += 1) {
        await act(client, i)
        await sleep(100)
      }
    } catch (error) {
      console.error('connection', error)
      await sleep(200)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

const users = Array.from({ length: AT_ONCE }, (_, user) =>
  again((client, i) => (user === 0 ? lockRows(client) : gateInTransaction(client, (user + i) % 2 === 0))),
)

await endOnSignal(member, async () => {
  isEnding = true
  await Promise.all(users)
  await w.stop()
  return 0
})

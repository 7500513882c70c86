// A worker process that claims one item and then only sends heartbeats for it, until it is killed.
import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { ledgerOn } from '../ledger-on.js'
import { ask } from '../settlements.js'

const [, , file = '', worker = '', lease = ''] = process.argv
const leaseMs = Number(lease)
const ledger = ledgerOn(sqliteBackend({ file }))
const me = { id: worker, host: 'h', version: '1', types: ['resize'], queues: ['default'] }
const [claimed] = (await ledger.claim(ask(1, { worker, leaseMs }))).items
if (claimed === undefined) throw new Error(`${worker}: there is nothing to hold`)
for (;;) {
  const [word] = await ledger.extend([{ lease: claimed.lease, running: true }], leaseMs, me)
  writeSync(1, `${JSON.stringify({ said: word })}\n`)
  if (word !== 'held') process.exit(1)
  await wait(leaseMs / 8)
}

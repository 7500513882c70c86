// A worker process: claims and settles until there is nothing left to do. It reports what it did line by line, so that one
// that is killed has reported all that it knew.
import { writeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { ledgerOn } from '../ledger-on.js'
import { ask, children, contribute, finish, item } from '../settlements.js'

const [, , file = '', worker = '', leaseMs = '30000', idleRounds = '20'] = process.argv
const backend = sqliteBackend({ file })
const ledger = ledgerOn(backend)
const say = (what: object): void => void writeSync(1, `${JSON.stringify(what)}\n`)
for (let idle = 0; idle < Number(idleRounds); ) {
  const { items } = await ledger.claim(ask(9, { worker, leaseMs: Number(leaseMs) }))
  idle = items.length === 0 ? idle + 1 : 0
  if (items.length === 0) await wait(20)
  const results = await ledger.commit(
    items.map((claimed) => {
      const { id, groupId } = claimed.envelope
      // Each root queues two children.
      const queued = claimed.envelope.parent === undefined ? children(claimed, [item(`${id}-x`), item(`${id}-y`)]) : []
      return finish(claimed, [contribute(groupId, JSON.stringify(id)), ...queued])
    }),
  )
  for (const [i, result] of results.entries())
    if (result.kind === 'applied')
      say({ done: items[i]!.lease.id, closed: result.closed.map(({ groupId }) => groupId) })
    else if (result.kind !== 'stale') throw new Error(`${worker}: ${JSON.stringify(result)}`)
}
await backend.close()

// A worker process: claims and settles until the queue is empty, and prints what it did as JSON.
import { systemClock } from '../../../src/core/clock.js'
import { ask, children, contribute, finish, item } from '../settlements.js'
import { SqliteTracer } from './ledger.js'

const [, , file, worker] = process.argv
const ledger = new SqliteTracer({ file: file!, clock: systemClock, random: Math.random })
// The clock's timers let a process end; this one has a reason to stay while it waits for the write lock.
const stay = setInterval(() => {}, 1_000)
const done: string[] = []
const closed: string[] = []
for (let idle = 0; idle < 20; ) {
  const { items } = await ledger.claim(ask(9, { worker: worker! }))
  idle = items.length === 0 ? idle + 1 : 0
  const results = await ledger.commit(
    items.map((claimed) => {
      const { id, groupId } = claimed.envelope
      // Each root queues two children.
      const queued = claimed.envelope.parent === undefined ? children(claimed, [item(`${id}-x`), item(`${id}-y`)]) : []
      return finish(claimed, [contribute(groupId, JSON.stringify(id)), ...queued])
    }),
  )
  for (const [i, result] of results.entries()) {
    if (result.kind !== 'applied') throw new Error(`${worker}: ${JSON.stringify(result)}`)
    done.push(items[i]!.lease.id)
    closed.push(...result.closed.map(({ groupId }) => groupId))
  }
}
await ledger.close()
clearInterval(stay)
process.stdout.write(JSON.stringify({ done, closed }))

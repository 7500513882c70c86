import { describe, expect, it } from 'vitest'
import { createWork, defineWork } from '../../../src/index.js'
import { ask, contribute, enqueue, finish, item, times } from '../settlements.js'
import { ledgerOn, openFile } from './open-file.js'

/** A backend that reports how many transactions it has begun. */
function counted() {
  const begun = { count: 0 }
  const backend = openFile({
    onStatement: (sql) => {
      if (/^begin/i.test(sql)) begun.count += 1
    },
  })
  return { backend, begun }
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('a batch on SQLite', () => {
  it('is one transaction, whatever is in it', async () => {
    const { backend, begun } = counted()
    const ledger = ledgerOn(backend)
    await ledger.read([])
    begun.count = 0

    await ledger.commit(times(100, (i) => enqueue(item(`i${i}`))))
    const { items } = await ledger.claim(ask(100))
    await ledger.commit(items.map((claimed) => finish(claimed, [contribute(claimed.lease.id, '1')])))

    expect(begun.count).toBe(3)
    await backend.close()
  })

  it('shares its transaction with everything else of its turn', async () => {
    const { backend, begun } = counted()
    const ledger = ledgerOn(backend)
    await ledger.read([])
    begun.count = 0

    const settled = times(100, (i) => ledger.commit([enqueue(item(`i${i}`))]))
    const [reply] = await Promise.all([ledger.claim(ask(100)), backend.store.set('a', 'b'), ...settled])

    expect(begun.count).toBe(1)
    expect(reply.items).toHaveLength(100)
    await backend.close()
  })

  it('settles a hundred concurrent runs of the engine in at most two transactions', async () => {
    const { backend, begun } = counted()
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const noop = defineWork('noop', async (_: number, ctx) => {
      await gate
      return ctx.void()
    })
    const work = createWork({ backend, work: [noop] as const, concurrency: 128 })
    await work.enqueueMany(times(100, (i) => noop(i)))
    while (work.active().length < 100) await new Promise((resolve) => setImmediate(resolve))
    // The claim that found nothing more is none of theirs.
    for (let before = -1; before !== begun.count; await turns(50)) before = begun.count
    begun.count = 0

    open()
    while (work.active().length > 0) await new Promise((resolve) => setImmediate(resolve))

    expect(begun.count).toBeLessThanOrEqual(2)
    await work.stop()
    await backend.close()
  })
})

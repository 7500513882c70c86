import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { foreignTo } from '../../../src/backends/postgres/enlist.js'
import type { PostgresBackend } from '../../../src/backends/postgres/index.js'
import { ownedBy } from '../../../src/ports/find-ledger.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { CommitResult, Settlement } from '../../../src/ports/settlement.js'
import { play } from '../ledger-player.js'
import { step } from '../ledger-steps.js'
import { stories } from '../stories.js'
import { Schemas } from './schemas.js'

let schemas: Schemas

beforeAll(async () => {
  schemas = await Schemas.start()
})
afterAll(() => schemas?.stop())

/** The same ledger, whose commits end when their notifications have arrived: the player compares them right after. */
function withNotificationsAwaited(ledger: Ledger, backend: PostgresBackend): Ledger {
  const channel = `millrace_${createHash('md5').update(schemas.schemaOf(backend)).digest('hex')}`
  let sent = 0
  return {
    ...ledger,
    commit: async (batch) => {
      const results = await ledger.commit(batch)
      sent += 1
      const mark = `mark ${sent}`
      await new Promise<void>((resolve, reject) => {
        const leave = ledger.onReady((queue) => {
          if (queue !== mark) return
          leave()
          resolve()
        })
        // Notifications arrive in the order of their commits.
        const payload = JSON.stringify({ r: [[mark, null]] })
        schemas.pool.query('select pg_notify($1, $2)', [channel, payload]).catch(reject)
      })
      return results
    },
  }
}

/** Resolves when this queue is announced. What transactions of users make ready is announced after they have committed. */
function announced(ledger: Ledger, queue: string): { readonly heard: Promise<void>; readonly leave: () => void } {
  let leave = () => {}
  const heard = new Promise<void>((resolve) => {
    leave = ledger.onReady((woken) => {
      if (woken === queue) resolve()
    })
  })
  return { heard, leave }
}

const groupsThat = (what: 'joinGroup' | 'leaveGroup', { effects }: Settlement): string[] =>
  effects.flatMap((effect) => (effect.do === what ? [effect.groupId] : []))

/** Written one by one, such a group closes and is opened again; written together it stays open, and the model says so. */
const keepsAGroupOpen = (batch: readonly Settlement[]): boolean =>
  batch.some((before, i) =>
    batch
      .slice(i + 1)
      .some((after) =>
        groupsThat('joinGroup', after).some((groupId) => groupsThat('leaveGroup', before).includes(groupId)),
      ),
  )

/** The same ledger, in which everything that a user's transaction can write is written by one. */
function thatEnlists(ledger: Ledger): Ledger {
  const one = async (settlement: Settlement): Promise<CommitResult> => {
    if (foreignTo(settlement) !== undefined) return (await ledger.commit([settlement]))[0]!
    const client = await schemas.pool.connect()
    const waits = settlement.effects.flatMap((effect) =>
      effect.do === 'enqueue' && (effect.delayMs !== Infinity || effect.hold?.by === 'gate')
        ? [announced(ledger, effect.queue)]
        : [],
    )
    try {
      await client.query('begin')
      const [result] = await ledger.enlist!(client).commit([settlement])
      await client.query('commit')
      if (result!.kind === 'applied') await Promise.all(waits.map(({ heard }) => heard))
      return result!
    } finally {
      // Without effect after a commit.
      await client.query('rollback')
      client.release()
      for (const { leave } of waits) leave()
    }
  }
  return {
    ...ledger,
    commit: async (batch) => {
      if (keepsAGroupOpen(batch)) return ledger.commit(batch)
      const results: CommitResult[] = []
      // Ours waits until the listeners here are connected; a user's transaction does not.
      await ledger.commit([])
      for (const settlement of batch) results.push(await one(settlement))
      // The next claim, of whatever queue, checks the gates that it opened.
      await ledger.claim({ queues: [{ queue: 'of nothing', max: 1 }], leaseMs: 1, worker: 'nobody' })
      return results
    },
  }
}

describe('the PostgreSQL ledger played against its model', () => {
  it.each([
    ['step by step', 60, (ledger: Ledger) => ledger],
    ['with enqueues in transactions of users', 40, thatEnlists],
  ])('gives the same answers and holds the same records, %s', { timeout: 600_000 }, (_, runs, within) =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        let backend: PostgresBackend | undefined
        try {
          await play(
            {
              open: (now) => {
                backend = schemas.make({ now })
                const owned = ownedBy(backend, [])
                if (!('open' in owned)) throw new Error('the backend has a native ledger')
                return withNotificationsAwaited(within(owned.open({ prefix: 'work:' })), backend)
              },
            },
            steps,
          )
        } finally {
          if (backend !== undefined) await schemas.close(backend)
        }
      }),
      { numRuns: stories(runs) },
    ),
  )
})

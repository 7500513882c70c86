import { expect, it } from 'vitest'
import { EventLoopTurns } from '../../src/core/time/event-loop-turns.js'
import type { Ledger } from '../../src/ports/ledger.js'
import { Waiters } from '../../src/work/wait/waiters.js'
import { BusyClock } from '../support/busy-clock.js'

it('thousands of waits let the event loop run between two queries of a backend that answers immediately', async () => {
  const said: string[] = []
  const clock = new BusyClock(() => said.push('turn'))
  const ledger = {
    onInbox: () => () => undefined,
    watch: async () => undefined,
    read: async (ids: readonly string[]) => {
      said.push('read')
      clock.workedMs += 5
      return ids.map((id) => ({ envelope: { id, groupId: id }, status: 'pending' }))
    },
    groups: async () => [],
  } as unknown as Ledger
  const keep = { completedMs: 1_000, deadMs: 1_000 } as never
  const turns = new EventLoopTurns(clock)
  const waiters = new Waiters({
    ledger,
    clock,
    inbox: 'me',
    onError: (error) => expect.unreachable(String(error)),
    holdsProcess: false,
    keep,
    turns,
  })
  const stop = new AbortController()
  for (let i = 0; i < 3_000; i += 1) {
    const accepted = Promise.resolve({ kind: 'created', id: `i${i}` } as const)
    const what = { kind: 'item', id: `i${i}`, groupId: `i${i}`, item: `i${i}`, hasInbox: false, accepted } as const
    waiters.wait(what, { signal: stop.signal }).catch(() => undefined)
  }
  await expect.poll(() => said.filter((word) => word === 'read')).toHaveLength(6)
  stop.abort()

  expect(said.join(' ')).not.toContain('read read')
})

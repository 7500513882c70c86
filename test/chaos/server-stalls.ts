import { Redis } from 'ioredis'
import pg from 'pg'
import { machineNow } from './machine-time.mjs'
import type { Timeline } from './timeline.js'

const PROBE_MS = 100

/**
 * A server that stalls (its disk does, or the machine has no time for it) answers no heartbeat: that is a fault of all processes,
 * and their own clocks do not show it. So it is asked to write a little, over a separate connection, time and again. `ask` that rejects
 * says nothing: a server that is away was restarted, which is known of.
 */
export function watchServer(ask: () => Promise<unknown>, timeline: Timeline, leaseMs: number): { close(): void } {
  let isOver = false
  const probe = async () => {
    const from = machineNow()
    const isAnswered = await ask().then(
      () => true,
      () => false,
    )
    const to = machineNow()
    if (isAnswered && to - from > leaseMs / 4) timeline.add({ kind: 'server', from, to })
    if (!isOver) setTimeout(probe, PROBE_MS)
  }
  void probe()
  return {
    close: () => {
      isOver = true
    },
  }
}

/** How a server is asked to write something that touches no table and no key of Millrace. */
export function askerOf(url: string): { ask(): Promise<unknown>; end(): void } {
  if (url.startsWith('redis:')) {
    const client = new Redis(url)
    client.on('error', () => undefined)
    return { ask: () => client.set('chaos:probe', '1'), end: () => client.disconnect() }
  }
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  pool.on('error', () => undefined)
  return {
    ask: () => pool.query("select pg_logical_emit_message(true, 'chaos', '')"),
    end: () => void pool.end().catch(() => undefined),
  }
}

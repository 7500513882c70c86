import Database from 'better-sqlite3'
import { machineNow } from './machine-time.mjs'
import type { Timeline } from './timeline.js'

const LOOK_MS = 50

/**
 * SQLite has one writer at a time. While a process stands still with the write lock in its hand (stopped by a signal, or waiting for
 * the disk), no other process can renew its leases: that is a fault of all of them, and their own clocks do not show it.
 */
export function watchWriteLock(file: string, timeline: Timeline, leaseMs: number): { close(): void } {
  const db = new Database(file, { timeout: 0 })
  const take = db.transaction(() => undefined).immediate
  /** When it was last free. */
  let freeAt = machineNow()
  const timer = setInterval(() => {
    const now = machineNow()
    if (!isFree(take)) return
    if (now - freeAt > leaseMs / 4) timeline.add({ kind: 'lock', from: freeAt, to: now })
    freeAt = now
  }, LOOK_MS)
  return {
    close: () => {
      clearInterval(timer)
      db.close()
    },
  }
}

function isFree(take: () => void): boolean {
  try {
    take()
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code === 'SQLITE_BUSY') return false
    // A full disk, say: another fault, which is known of.
    return true
  }
}

// What a process of the fleet reports about its own health.
import { machineNow } from './machine-time.mjs'

const SAMPLE_MS = 500
const LOOK_MS = 100

/**
 * Writes heap and `onError` calls into the log from time to time, and every moment in which the event loop stalled for a
 * quarter of a lease. The processor time in it distinguishes a process that was kept busy from one that was kept waiting.
 * @param {import('./truth-log.mjs').TruthLog} log
 * @param {number} leaseMs
 */
export function watchVitals(log, leaseMs) {
  /** @type {Record<string, number>} */
  const errors = {}
  let lookedAt = machineNow()
  let used = process.cpuUsage()
  setInterval(() => {
    const now = machineNow()
    const gapMs = now - lookedAt
    if (gapMs > leaseMs / 4) {
      const { user, system } = process.cpuUsage(used)
      void log.write({ is: 'stall', from: lookedAt, to: now, cpuMs: (user + system) / 1_000 })
    }
    lookedAt = now
    used = process.cpuUsage()
  }, LOOK_MS)
  const sample = () => log.write({ is: 'vitals', at: machineNow(), heapBytes: process.memoryUsage().heapUsed, errors })
  setInterval(() => void sample(), SAMPLE_MS)
  return {
    sample,
    /** @param {unknown} error */
    countError(error) {
      const { code, name } = /** @type {{ code?: unknown, name?: unknown }} */ (error ?? {})
      const key = String(code ?? name ?? error)
      errors[key] = (errors[key] ?? 0) + 1
    },
  }
}

// What every process of the fleet has in common: `node worker.mjs SETTINGS`, where the settings are JSON.
import { backendOf } from './backend-of.mjs'
import { steppingClock } from './stepping-clock.mjs'
import { TruthLog } from './truth-log.mjs'
import { watchVitals } from './vitals.mjs'

/**
 * @typedef {object} Settings
 * @property {string} address where the backend is
 * @property {string} file the truth log of this process
 * @property {string} name
 * @property {number} leaseMs
 * @property {number} offsetMs of the wall clock when it starts; the parent sends the later ones
 * @property {number} perSecond how much a producer enqueues
 * @property {number} crasherEveryMs how often a waiter enqueues work that kills its process; 0: never
 * @property {number} patienceMs how long a waiter waits at the end
 */

/** Opens log, clock and backend. A process whose parent is gone ends. */
export async function openMember() {
  /** @type {Settings} */
  const settings = JSON.parse(process.argv[2] ?? '{}')
  const log = new TruthLog(settings.file)
  const { clock, setOffset } = steppingClock(settings.offsetMs)
  const vitals = watchVitals(log, settings.leaseMs)
  process.on('message', (/** @type {{ offsetMs: number }} */ { offsetMs }) => setOffset(offsetMs))
  process.on('disconnect', () => process.exit(1))
  const backend = await backendOf(settings.address, { clock })
  /** Options of `createWork` that all have.
   * @type {Pick<import('millrace').WorkSystemOptions, 'backend' | 'clock' | 'log' | 'onError'>} */
  const common = {
    backend,
    clock,
    // Its handlers fail on purpose.
    log: false,
    onError: (error, phase) => {
      vitals.countError(error)
      console.error(phase, error instanceof Error ? `${error.name}: ${error.message}` : error)
    },
  }
  return { settings, log, backend, common, vitals }
}

/**
 * From here on SIGTERM ends it; it exits with what `end` returns.
 * @param {Awaited<ReturnType<typeof openMember>>} member
 * @param {() => Promise<number>} end
 */
export async function endOnSignal({ log, backend, vitals }, end) {
  process.once('SIGTERM', async () => {
    const code = await end()
    await vitals.sample()
    await backend.close()
    process.exit(code)
  })
  await log.write({ is: 'born' })
}

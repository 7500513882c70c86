import Database from 'better-sqlite3'
import { peer } from './peers.mjs'

const TYPE = 'bench'
/** How often it asks for new jobs, in ms: the fastest there is, at the price of a worker that is never idle. */
const POLL_MS = 1

/** @type {import('./contender.js').OpenContender} */
export async function openPlainjob({ address }, { onError }) {
  const { better, defineQueue, defineWorker, JobStatus } = await peer('plainjob')
  const silent = () => {}
  const logger = {
    error: (/** @type {string} */ message) => onError(new Error(message)),
    warn: silent,
    info: silent,
    debug: silent,
  }
  const queue = defineQueue({ connection: better(new Database(address)), logger })
  /** @type {any} */
  let worker
  /** @type {Promise<void> | undefined} */
  let working
  /** @param {number} status */
  const count = (status) => queue.countJobs({ type: TYPE, status })
  return {
    add: async (payload) => queue.add(TYPE, payload),
    addMany: async (payloads) => queue.addMany(TYPE, payloads),
    async work(handle) {
      worker = defineWorker(TYPE, async (/** @type {{ data: string }} */ { data }) => handle(JSON.parse(data)), {
        queue,
        logger,
        pollIntervall: POLL_MS,
        onFailed: (/** @type {unknown} */ _job, /** @type {string} */ error) => onError(new Error(error)),
      })
      working = worker.start()
    },
    async counts() {
      return { pending: count(JobStatus.Pending) + count(JobStatus.Processing), completed: count(JobStatus.Done) }
    },
    async close() {
      await worker?.stop()
      await working
      queue.close()
    },
  }
}

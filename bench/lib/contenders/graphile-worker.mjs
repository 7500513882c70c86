import pg from 'pg'
import { peer } from './peers.mjs'

const TASK = 'bench'
const CHUNK = 1_000
/** The settings of its own page on performance. */
const SETTINGS = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}

/** @type {import('./contender.js').OpenContender} */
export async function openGraphileWorker({ address }, { onError }) {
  const { Logger, makeWorkerUtils, run } = await peer('graphile-worker')
  const logger = new Logger(() => (/** @type {string} */ level, /** @type {string} */ message) => {
    if (level === 'error') onError(new Error(message))
  })
  const preset = { worker: { connectionString: address, logger, ...SETTINGS } }
  const utils = await makeWorkerUtils({ preset })
  await utils.migrate()
  const reader = new pg.Client(address)
  await reader.connect()
  /** @type {any} */
  let runner
  return {
    add: (payload) => utils.addJob(TASK, payload),
    async addMany(payloads) {
      for (let from = 0; from < payloads.length; from += CHUNK) {
        await utils.addJobs(payloads.slice(from, from + CHUNK).map((payload) => ({ identifier: TASK, payload })))
      }
    },
    async work(handle) {
      runner = await run({
        preset,
        noHandleSignals: true,
        taskList: { [TASK]: async (/** @type {any} */ payload) => handle(payload) },
      })
    },
    async counts() {
      const { rows } = await reader.query('select count(*)::int as pending from graphile_worker._private_jobs')
      return rows[0]
    },
    async close() {
      await runner?.stop()
      await utils.release()
      await reader.end()
    },
  }
}

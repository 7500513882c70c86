import { peer } from './peers.mjs'

const NAME = 'bench'
const CHUNK = 1_000
/** Nothing is kept of a job that has ended, which is the fastest; ours keeps the outcome. */
const OPTIONS = { removeOnComplete: true, removeOnFail: true }

/** @type {import('./contender.js').OpenContender} */
export async function openBullMq({ address }, { onError }) {
  const { Queue, Worker } = await peer('bullmq')
  const { hostname: host, port } = new URL(address)
  const connection = { host, port: Number(port), maxRetriesPerRequest: null }
  const queue = new Queue(NAME, { connection })
  queue.on('error', onError)
  await queue.waitUntilReady()
  /** @type {any} */
  let worker
  return {
    add: (payload) => queue.add(NAME, payload, OPTIONS),
    async addMany(payloads) {
      for (let from = 0; from < payloads.length; from += CHUNK) {
        await queue.addBulk(payloads.slice(from, from + CHUNK).map((data) => ({ name: NAME, data, opts: OPTIONS })))
      }
    },
    async work(handle) {
      worker = new Worker(NAME, async (/** @type {any} */ { data }) => handle(data), { connection, concurrency: 100 })
      worker.on('error', onError)
      worker.on('failed', (/** @type {unknown} */ _job, /** @type {unknown} */ error) => onError(error))
      await worker.waitUntilReady()
    },
    async counts() {
      const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'paused')
      return { pending: Object.values(counts).reduce((sum, count) => sum + Number(count), 0) }
    },
    async close() {
      await worker?.close()
      await queue.close()
    },
  }
}

import pg from 'pg'
import { peer } from './peers.mjs'

const NAME = 'bench'
const CHUNK = 1_000
const WORK = { batchSize: 500, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }

/** @type {import('./contender.js').OpenContender} */
export async function openPgBoss({ address }, { isForLatency, onError }) {
  const { PgBoss } = await peer('pg-boss')
  const boss = new PgBoss({ connectionString: address, useListenNotify: isForLatency })
  boss.on('error', onError)
  await boss.start()
  // A notification for each insert costs those who add, and starts single items sooner.
  await boss.createQueue(NAME, { notify: isForLatency })
  const reader = new pg.Client(address)
  await reader.connect()
  return {
    add: (payload) => boss.send(NAME, payload),
    async addMany(payloads) {
      for (let from = 0; from < payloads.length; from += CHUNK) {
        await boss.insert(
          NAME,
          payloads.slice(from, from + CHUNK).map((data) => ({ data })),
        )
      }
    },
    async work(handle) {
      await boss.work(NAME, WORK, async (/** @type {any[]} */ jobs) => {
        for (const { data } of jobs) handle(data)
      })
    },
    async counts() {
      const { rows } = await reader.query(
        `select count(*) filter (where state < 'completed')::int as pending,
                count(*) filter (where state = 'completed')::int as completed from pgboss.job where name = $1`,
        [NAME],
      )
      return rows[0]
    },
    async close() {
      await boss.stop({ graceful: true, close: true, timeout: 10_000 })
      await reader.end()
    },
  }
}

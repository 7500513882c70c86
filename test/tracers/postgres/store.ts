import pg from 'pg'
import { startPostgres } from '../../servers/index.js'
import type { TracerStore } from '../tracer.js'
import { migrate, PostgresTracer } from './ledger.js'

/** A name that needs quoting, so that a statement which forgets to quote it fails. */
export const SCHEMA = 'Tracer "1"'

/** A private PostgreSQL. */
export async function postgresStore(): Promise<TracerStore & { readonly url: string; connect(): Promise<pg.Client> }> {
  const server = await startPostgres({ settings: { fsync: 'off' } })
  const connect = async () => {
    const client = new pg.Client(server.url)
    await client.connect()
    return client
  }
  return {
    name: 'postgres',
    url: server.url,
    connect,
    open: async (now) => new PostgresTracer({ client: await connect(), schema: SCHEMA, ...(now && { now }) }),
    async reset() {
      const client = await connect()
      await client.query(`drop schema if exists ${pg.escapeIdentifier(SCHEMA)} cascade`)
      await migrate(client, SCHEMA)
      await client.end()
    },
    close: () => server.stop(),
  }
}

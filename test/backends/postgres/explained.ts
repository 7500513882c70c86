import pg from 'pg'
import { Schemas } from './schemas.js'

export interface Explained {
  readonly schemas: Schemas
  /** One connection whose server reports the plan of everything it runs. */
  readonly pool: pg.Pool
  /** Those plans, nested statements included, each with the text of its statement. Empty it to see only what comes next. */
  readonly plans: string[]
  stop(): Promise<void>
}

const OPTIONS = '-c auto_explain.log_min_duration=0 -c auto_explain.log_nested_statements=on -c client_min_messages=log'

/** A private server that explains what it does. */
export async function startExplained(): Promise<Explained> {
  const plans: string[] = []
  class ExplainedClient extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config)
      this.on('notice', ({ message }) => {
        if (message?.includes('Query Text:') === true) plans.push(message)
      })
    }
  }
  const schemas = await Schemas.start({ fsync: 'off', session_preload_libraries: 'auto_explain' })
  // The types of pg do not know `Client`, which its pool takes.
  const config = { connectionString: schemas.url, max: 1, options: OPTIONS, Client: ExplainedClient } as pg.PoolConfig
  const pool = new pg.Pool(config)
  const stop = async () => {
    await pool.end()
    await schemas.stop()
  }
  return { schemas, pool, plans, stop }
}

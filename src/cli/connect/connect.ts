import type { Clock } from '../../core/time/clock.js'
import type { Address } from './address.js'
import type { Connected } from './connected.js'
import { type Timeouts, within, withTimeouts } from './timeout.js'

/** Loads the driver of an address. It connects on the first query. */
export async function connect(address: Address, clock: Clock, timeouts: Timeouts): Promise<Connected> {
  const { name } = address
  const { firstMs, answerMs } = timeouts
  const connected = await open(address, clock, timeouts)
  const facts = () => within(connected.facts(), firstMs, name, clock)
  return {
    ...connected,
    ops: async (needs) => withTimeouts(await within(connected.ops(needs), firstMs, name, clock), answerMs, name, clock),
    facts,
    async migrate() {
      // A migration may take long on a large table, so only the first answer has a timeout. A missing SQLite file is created.
      if (address.kind !== 'sqlite') await facts()
      return connected.migrate()
    },
  }
}

async function open(address: Address, clock: Clock, { firstMs }: Timeouts): Promise<Connected> {
  switch (address.kind) {
    case 'sqlite':
      return (await import('./sqlite.js')).connectSqlite(address, clock)
    case 'postgres':
      return (await import('./postgres.js')).connectPostgres(address, clock)
    case 'redis':
      return (await import('./redis.js')).connectRedis(address, clock, firstMs)
  }
}

import type { Clock } from '../../core/clock.js'
import type { Address } from './address.js'
import { answeringWithin, type Patience, within } from './patience.js'
import type { Reached } from './reached.js'

/** Reaches the backend of an address. Its driver is loaded only now; it connects when it is first asked something. */
export async function reach(address: Address, clock: Clock, patience: Patience): Promise<Reached> {
  const { name } = address
  const { firstMs, answerMs } = patience
  const reached = await open(address, clock, patience)
  const facts = () => within(reached.facts(), firstMs, name, clock)
  return {
    ...reached,
    ops: async (needs) =>
      answeringWithin(await within(reached.ops(needs), firstMs, name, clock), answerMs, name, clock),
    facts,
    async migrate() {
      // A step may take long on a large table; whether anybody is there may not. A file that is not there is made.
      if (address.kind !== 'sqlite') await facts()
      return reached.migrate()
    },
  }
}

async function open(address: Address, clock: Clock, { firstMs }: Patience): Promise<Reached> {
  switch (address.kind) {
    case 'sqlite':
      return (await import('./sqlite.js')).reachSqlite(address, clock)
    case 'postgres':
      return (await import('./postgres.js')).reachPostgres(address, clock)
    case 'redis':
      return (await import('./redis.js')).reachRedis(address, clock, firstMs)
  }
}

// The shop: one type of writs, "order", and its three steps. Every process of the fleet starts it with the same database.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { NonRetryableError } from 'millrace'
import { defineStep, type GuildClient, guildClient, startGuild } from 'millrace/guild'
import { postgresBackend } from 'millrace/postgres'
import { sqliteBackend } from 'millrace/sqlite'
import { Outside } from './outside.js'

export interface Order {
  readonly orderId: string
  /** What is wrong with it, for the story. */
  readonly trouble?: 'declined' | 'jam' | 'no paper'
}

export interface ShopOptions {
  /** `postgres://…`, or the path of a SQLite file. */
  readonly address: string
  /** Where the world outside is. */
  readonly outside: string
  /** How long a call of a service takes. */
  readonly takesMs?: number
  /** How long a process keeps its steps after it was killed. Seconds in real life. */
  readonly visibility?: number
}

/** Starts a worker of the shop in this process. Stop it, then close its backend. */
export async function startShop({ address, outside, takesMs = 20, visibility = 30_000 }: ShopOptions) {
  const world = new Outside(outside)
  const backend = isPostgres(address)
    ? postgresBackend({ connectionString: address })
    : sqliteBackend({ file: address })

  const charge = defineStep('charge', async ({ trouble }: Order, ctx) => {
    // A new card is on file once the customer was asked: see the story.
    if (trouble === 'declined' && !existsSync(join(outside, 'new-card')))
      throw new NonRetryableError('the card was declined')
    // The key is that of the writ, and not of this attempt: another rig must not charge again.
    return { receipt: await world.call('bank', ctx.writKey(), takesMs) }
  })

  const label = defineStep('label', async ({ trouble }: Order, ctx) => {
    if (trouble === 'no paper') throw new Error('the printer is out of paper')
    if (trouble === 'jam' && ctx.rigAttempt === 1) throw new Error('the printer is jammed')
    return { label: await world.call('printer', ctx.writKey(), takesMs) }
  })

  const ship = defineStep('ship', async ({ orderId }: Order, ctx) => {
    const { receipt } = ctx.resultOf(charge)
    return { orderId, receipt, parcel: await world.call('carrier', ctx.writKey(), takesMs) }
  })

  const guild = await startGuild({
    backend,
    writTypes: {
      order: {
        steps: [charge, label, ship],
        retry: { maxRigs: 4, backoff: { initialMs: 50 } },
        deadlineMs: 7 * 86_400_000,
      },
    },
    work: { visibility },
  })
  return { guild, backend }
}

/** The shop as its web server sees it: it posts and reads orders, and needs none of their steps. */
export function openShop(address: string): Promise<GuildClient> {
  return guildClient({
    stacks: isPostgres(address)
      ? { backend: 'postgres', connectionString: address }
      : { backend: 'sqlite', file: address },
  })
}

const isPostgres = (address: string): boolean => /^postgres(ql)?:/.test(address)

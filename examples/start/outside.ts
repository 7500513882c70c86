import { setTimeout as sleep } from 'node:timers/promises'
import { InvalidForStateError, PoisonError } from 'millrace'

// The world that the handlers meet. It behaves badly on purpose, and the same way in every run.

const PRICES: Readonly<Record<string, number>> = { rye: 420, wheat: 380, pretzel: 90, cake: 2_450 }
const STREETS: ReadonlySet<string> = new Set(['Mill Lane 1'])
const declined = new Map<string, number>()
const paid = new Set<string>()
const openedAt = Date.now()

/** What one costs, in cents. */
export async function bake(bread: string, count: number): Promise<number> {
  await sleep(40 * count)
  const price = PRICES[bread]
  if (price === undefined) throw new PoisonError(`nobody here can bake "${bread}"`)
  return price
}

/** The card terminal does not answer the first two times that a customer pays. */
export async function pay(customer: string, cents: number, signal: AbortSignal): Promise<string> {
  await sleep(60, undefined, { signal })
  const failures = declined.get(customer) ?? 0
  declined.set(customer, failures + 1)
  // The shape of an error from an HTTP client: its status says that trying again may help.
  if (failures < 2) throw Object.assign(new Error('the card terminal does not answer'), { status: 503 })
  if (paid.has(customer)) throw new InvalidForStateError(`${customer} has paid already`)
  paid.add(customer)
  return `${customer} paid ${(cents / 100).toFixed(2)}`
}

/** The van comes back two seconds after the shop has opened. */
export function msUntilVan(): number {
  return Math.max(0, openedAt + 2_000 - Date.now())
}

export function findStreet(street: string): string {
  if (!STREETS.has(street)) throw new PoisonError(`there is no street "${street}"`)
  return street
}

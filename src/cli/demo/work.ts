import { PoisonError } from '../../core/failure/failure-errors.js'
import { defineWork } from '../../work/define/define-work.js'

/** How many calls the service rejects first. */
const BUSY_CALLS = 2

/** The types of work in the demonstration, and the services they call. */
export function demoWork() {
  const streets = new Set(['Mill Lane'])
  let calls = 0

  const greet = defineWork('greet', ({ name }: { name: string }, ctx) => ctx.result(`Hello, ${name}`))

  /** Flaky: it answers 503 at first. That is temporary, so it is retried with a growing delay. */
  const charge = defineWork(
    'charge',
    ({ order }: { order: string }, ctx) => {
      calls += 1
      if (calls <= BUSY_CALLS)
        throw Object.assign(new Error('the card terminal answered 503 Service Unavailable'), { status: 503 })
      return ctx.result(`${order} is paid`)
    },
    { retry: { attempts: 4, base: 300, jitter: 0 } },
  )

  /** Poison: a street that does not exist will not exist at the next attempt either, so the item is dead-lettered immediately. */
  const label = defineWork('label', ({ street }: { street: string }, ctx) => {
    if (!streets.has(street)) throw new PoisonError(`there is no street called ${street}`)
    return ctx.result(`a label for ${street}`)
  })

  return {
    greet,
    charge,
    label,
    /** Fixes the map. */
    addStreet: (name: string) => void streets.add(name),
  }
}

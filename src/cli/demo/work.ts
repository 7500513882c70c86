import { PoisonError } from '../../core/failure-errors.js'
import { defineWork } from '../../work/define-work.js'

/** A service that is down for its first calls, as services are. */
const BUSY_CALLS = 2

/** The types of the story, and the world that they meet. */
export function demoWork() {
  const streets = new Set(['Mill Lane'])
  let calls = 0

  const greet = defineWork('greet', ({ name }: { name: string }, ctx) => ctx.result(`Hello, ${name}`))

  /** Flaky: it answers 503 at first. That may pass, so it is tried again with a growing pause. */
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

  /** Poison: what does not exist will not exist at the next attempt either, so it is parked at once. */
  const label = defineWork('label', ({ street }: { street: string }, ctx) => {
    if (!streets.has(street)) throw new PoisonError(`there is no street called ${street}`)
    return ctx.result(`a label for ${street}`)
  })

  return {
    greet,
    charge,
    label,
    /** Somebody mends the map. */
    addStreet: (name: string) => void streets.add(name),
  }
}

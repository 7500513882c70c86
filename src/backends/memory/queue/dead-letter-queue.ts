import { newToken } from '../../../core/ids.js'
import type { At, Ms } from '../../../core/time/time.js'
import type { PulledWork, Queue } from '../../../ports/ports.js'
import { checkText } from '../../shared/check-text.js'
import { givenDuration, type Time } from '../time.js'
import type { DeadLettered, DeadLetters } from './dead-letters.js'

/** A lease of a dead letter, or the time for which it was put back. */
interface Lending {
  token: string | undefined
  leaseEnd: Ms
  visibleAt: At
  deliveries: number
}

/**
 * The dead-letter sink as a queue, so that it can be redriven from. `pop` lends the oldest entries, `ack` takes one out of
 * the sink, `fail` hides it for a while. A body that is pushed is buried.
 */
export function deadQueue(dead: DeadLetters, time: Time, changed: () => void): Queue {
  const lendings = new WeakMap<DeadLettered, Lending>()
  const byToken = new Map<string, DeadLettered>()

  const lendingOf = (entry: DeadLettered): Lending => {
    let lending = lendings.get(entry)
    if (lending === undefined) {
      lending = { token: undefined, leaseEnd: 0, visibleAt: 0, deliveries: 0 }
      lendings.set(entry, lending)
    }
    return lending
  }
  const endOf = (lending: Lending): void => {
    if (lending.token !== undefined) byToken.delete(lending.token)
    lending.token = undefined
  }
  /** The entry and its lease, if the handle is that of its current lease. */
  const lent = (pulled: PulledWork): readonly [DeadLettered, Lending] | undefined => {
    const entry = byToken.get(pulled.handle as string)
    return entry === undefined ? undefined : [entry, lendingOf(entry)]
  }

  /** An entry that was evicted while it was lent leaves its token behind: those are dropped when they become many. */
  const forgetEvicted = (): void => {
    if (byToken.size <= 2 * dead.list.length + 64) return
    const present = new Set(dead.list)
    for (const [token, entry] of byToken) if (!present.has(entry)) byToken.delete(token)
  }

  return {
    push(body) {
      checkText('push', 'body', body)
      dead.add({ body, error: 'pushed to the dead-letter queue' })
      changed()
    },
    pop(max, visibility) {
      const leaseMs = givenDuration('pop.visibility', visibility)
      const now = time.wall()
      const steady = time.steady()
      const taken: PulledWork[] = []
      for (const entry of dead.list) {
        if (taken.length >= max) break
        const lending = lendingOf(entry)
        const isLent = lending.token !== undefined && lending.leaseEnd > steady
        if (isLent || lending.visibleAt > now) continue
        endOf(lending)
        lending.token = newToken()
        lending.leaseEnd = steady + leaseMs
        lending.deliveries += 1
        byToken.set(lending.token, entry)
        taken.push({ body: entry.body, handle: lending.token, attempt: lending.deliveries })
      }
      forgetEvicted()
      return taken
    },
    heartbeat(pulled, visibility) {
      const found = lent(pulled)
      if (found === undefined) return false
      found[1].leaseEnd = time.steady() + givenDuration('heartbeat.visibility', visibility)
      return true
    },
    ack(pulled) {
      const found = lent(pulled)
      if (found === undefined) return
      endOf(found[1])
      if (dead.remove(found[0])) changed()
    },
    fail(pulled, delay) {
      const wait = givenDuration('fail.delay', delay)
      const found = lent(pulled)
      if (found === undefined) return
      endOf(found[1])
      found[1].visibleAt = time.wall() + wait
    },
    size: () => dead.list.length,
  }
}

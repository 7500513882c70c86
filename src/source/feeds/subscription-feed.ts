import { nakAfter, type Result } from '../../core/stream/result.js'
import { LazySignal } from '../../core/time/lazy-signal.js'
import type { Ms } from '../../core/time/time.js'
import type { LeaseStatus } from '../../ports/ledger.js'
import { hasCode, isAlreadySettled } from '../errors.js'
import type { Subscription } from '../inlets/subscription.js'
import type { Delivery } from '../loop/delivery.js'
import type { Feed, Pulled, SettleTry } from '../loop/feed.js'
import type { Message } from '../message/message.js'

/** A subscription as the loop's feed. The loop neither opens nor closes it. */
export function feedOf(sub: Subscription, options: { readonly heartbeat: boolean }): Feed<Message, Result> {
  const batched = sub.capability('batched')
  const releaser = sub.capability('releaser')
  const extender = options.heartbeat ? sub.capability('leaseExtender') : undefined

  const starter = sub.capability('starter')

  return {
    ...(starter === undefined
      ? {}
      : {
          begin: (deliveries: readonly Delivery<Message>[]) =>
            starter.start(deliveries.map((delivery) => delivery.item)),
        }),
    async pull(max: number, signal: AbortSignal): Promise<Pulled<Message>> {
      // A subscription waits inside `next`, so that there is always another look to take.
      if (batched !== undefined) return { items: await batched.nextBatch(max, { signal }), more: true }
      return { items: [await sub.next({ signal })], more: true }
    },
    settle(delivery: Delivery<Message>, result: Result, by: SettleTry): void {
      sub.settle(delivery.item, result, by).then(
        () => by.answered('settled'),
        (error: unknown) => {
          if (hasCode(error, 'LEASE_LOST')) by.answered('lost')
          // An earlier try that went unanswered got through after all.
          else if (delivery.settleTries > 1 && isAlreadySettled(error)) by.answered('settled')
          else by.failed(error)
        },
      )
    },
    async release(deliveries: readonly Delivery<Message>[], delayMs?: Ms): Promise<void> {
      // One that had started counts as an attempt: a handler that never ends must reach the limit of deliveries.
      const giveBack = async ({ item, started, reason }: Delivery<Message>) => {
        if (releaser !== undefined && delayMs === undefined && !started) await releaser.release(item)
        else await sub.settle(item, nakAfter(delayMs ?? 0, reason), new LazySignal())
      }
      // Each by itself: one that cannot be released does not affect the others.
      const given = await Promise.allSettled(deliveries.map(giveBack))
      const failed = given.find((one) => one.status === 'rejected')
      if (failed !== undefined) throw failed.reason
    },
    ...(extender === undefined
      ? {}
      : {
          lease: {
            ms: extender.leaseMs,
            async extend(deliveries: readonly Delivery<Message>[]): Promise<readonly LeaseStatus[]> {
              const messages = deliveries.map((delivery) => delivery.item)
              if (extender.extendMany !== undefined) return (await extender.extendMany(messages)).map(leaseWord)
              const asked = await Promise.allSettled(messages.map((m) => extender.extend(m)))
              const failed = asked.find((a) => a.status === 'rejected')
              if (failed !== undefined && asked.every((a) => a.status === 'rejected')) throw failed.reason
              return asked.map((a) => (a.status === 'rejected' ? 'unknown' : leaseWord(a.value)))
            },
          },
        }),
    isTransient: isFlaggedTransient,
  }
}

function leaseWord(kept: boolean | void): LeaseStatus {
  return kept === false ? 'lost' : 'held'
}

/** An adapter flags a fetch error that may pass by `transient: true` on it. */
function isFlaggedTransient(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { readonly transient?: unknown }).transient === true
}

import type { Result } from '../../core/stream/result.js'
import type { Delivery } from '../loop/delivery.js'
import type { LoopObserver } from '../loop/loop-observer.js'
import type { Message } from '../message/message.js'
import type { ResolvedHopperOptions } from './resolve-hopper-options.js'
import { type Counts, messageOutcomeOf } from './run-summary.js'
import type { SourceTelemetry } from './telemetry.js'

/** Turns what the loop reports into `source.*` counters, log lines and the counts of the summary. */
export function observerOf(
  { name, logger }: ResolvedHopperOptions,
  telemetry: SourceTelemetry,
  counts: Counts,
): LoopObserver<Message, Result> {
  return {
    pulled() {
      telemetry.count.received()
      telemetry.inFlight(1)
    },
    settled(_, result) {
      const outcome = messageOutcomeOf(result)
      counts[outcome] += 1
      telemetry.count[outcome]()
      telemetry.inFlight(-1)
    },
    unsettled(delivery, _, error) {
      telemetry.count.failed()
      telemetry.inFlight(-1)
      logger.error('A message could not be settled; it will be delivered again', factsOf(delivery, error))
    },
    lost(delivery) {
      telemetry.inFlight(-1)
      logger.warn('A lease was lost while its message was held; it is delivered again', factsOf(delivery))
    },
    returned: () => telemetry.inFlight(-1),
    abandoned(delivery) {
      telemetry.count.abandoned()
      telemetry.inFlight(-1)
      logger.error('A handler did not stop in time and was left running', factsOf(delivery))
    },
    settleRetry: () => telemetry.count.settleRetries(),
    stalled: (ms) => telemetry.fetchStalled(ms),
    failed: (phase, error) => logger.warn(`A ${phase} failed`, { name, error }),
  }
}

function factsOf(delivery: Delivery<Message>, error?: unknown): Record<string, unknown> {
  return {
    subject: delivery.item.subject,
    cursor: delivery.item.cursor.toString(),
    ...(error === undefined ? {} : { error }),
  }
}

import { channel } from 'node:diagnostics_channel'
import { MillraceError } from '../../core/error.js'
import { stringOption } from '../../core/options.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { ClerkApi } from '../clerk/api.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import { guild } from '../host/current.js'
import type { Apparatus, Plugin } from '../host/plugin.js'
import type { StacksApi } from '../stacks/api.js'
import { publishSettings, SETTINGS_BOOK } from '../stacks/settings.js'
import type { ClockworksRetryApi, RetryDescription } from './api.js'
import { MAX_RETRY_ATTEMPTS } from './cap.js'
import { RETRY_WATCHER } from './describe.js'
import { RetryObserver } from './observer.js'
import { type ClockworksRetryConfig, checkRetryConfig, rigPolicyOf } from './policy.js'

/** What it is made with. */
export interface ClockworksRetryOptions {
  /**
   * Called with every decision about a writ that became stuck with the flag. Default: none; all are also published on the
   * diagnostics channel `millrace:clockworks-retry`.
   */
  readonly onDecision?: (decision: RetryDescription) => void
}

/** A plugin that gives writs a second attempt. It stores nothing and changes nothing but the writ's phase. */
export function createClockworksRetry(options: ClockworksRetryOptions = {}): Plugin {
  return {
    // One for each guild.
    get apparatus() {
      return apparatusOf(options)
    },
  }
}

function apparatusOf({ onDecision }: ClockworksRetryOptions): Apparatus {
  let api: ClockworksRetryApi | undefined
  const decisions = channel('millrace:clockworks-retry')
  const notify = (decision: RetryDescription): void => {
    decisions.publish(decision)
    onDecision?.(decision)
  }
  return {
    requires: ['stacks', 'clerk'],
    recommends: ['spider'],
    supportKit: { books: SETTINGS_BOOK },
    get provides() {
      return api
    },
    start(ctx) {
      const config = checkRetryConfig(guild().config<ClockworksRetryConfig>('clockworks-retry'))
      const stacks = guild().apparatus<StacksApi>('stacks')
      const observer = new RetryObserver({
        stacks,
        clerk: guild().apparatus<ClerkApi>('clerk'),
        notify,
        clock: ctx.clock,
        policyOf: (type) => rigPolicyOf(config, type),
      })
      // After the commit, because a retry that fails must never undo the record of the failure; and kept by the store until it is
      // handled, because a process may die in between.
      stacks.watch<WritDoc>('clerk', 'writs', (event) => observer.observe(event), { durable: RETRY_WATCHER })
      ctx.on('phase:started', async () => {
        checkTypes(config, guild().apparatus<ClerkApi>('clerk'))
        await publishSettings(stacks, 'clockworks-retry', config)
        await observer.sweep((id, error) => warn(id, error))
      })
      api = Object.freeze<ClockworksRetryApi>({
        maxAttempts: config.maxRigs ?? MAX_RETRY_ATTEMPTS,
        maxRigsOf: (type) => rigPolicyOf(config, stringOption('maxRigsOf(type)', type)).maxRigs,
        describe: async (writId) => observer.describe(stringOption('describe(writId)', writId)),
      })
    },
  }
}

/** A policy for a type that is not there would be for no writ at all. */
function checkTypes({ types = {} }: ClockworksRetryConfig, clerk: ClerkApi): void {
  for (const type of Object.keys(types)) {
    try {
      clerk.getWritTypeConfig(type)
    } catch (error) {
      throw new MillraceError('BAD_RETRY_CONFIG', `guild.json.clockworks-retry.types: ${errorMessage(error)}`, {
        cause: error,
        facts: { type },
      })
    }
  }
}

function warn(writId: string, error: unknown): void {
  process.emitWarning(`Writ ${writId} could not be opened again: ${errorMessage(error)}`, {
    type: 'ClockworksRetryWarning',
    code: 'SWEEP_FAILED',
  })
}

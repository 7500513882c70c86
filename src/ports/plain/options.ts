import { type Clock, systemClock } from '../../core/clock.js'
import { newToken } from '../../core/ids.js'
import { functionOption, numberOption, optionsObject } from '../../core/options.js'
import type { Ms } from '../../core/time.js'
import type { RetryPort } from './call.js'

/** Options of {@link overPlainPorts}. */
export interface PlainOptions {
  /** Stands before every key in the store. Default: `work:`. */
  readonly prefix?: string
  /** Default: real time. */
  readonly clock?: Clock
  /**
   * How long states, plans, markers and group keys are kept after they were last written, beyond the delay of what they
   * belong to. A group that stays open for longer needs more. Default: 24 h.
   */
  readonly retentionMs?: Ms
  /** How long `wait:<gid>` says that somebody waits. Default: 1 h. */
  readonly waitMs?: Ms
  /** How long a delivery that must not run now is put back for; paused ones longer each time. Default: 1000. */
  readonly putBackMs?: Ms
  /** How long a held item hides before its gate is looked at for safety; doubles up to a minute. Default: 1000. */
  readonly gatePollMs?: Ms
  /** How long a claim waits for slow queues after a fast one has answered. Default: 50. */
  readonly slowMs?: Ms
  /** Repeats calls that may be repeated (the system's `portRetry`). Default: once. */
  readonly retryPort?: RetryPort
  /** What goes wrong where no caller waits for it. Default: nothing. */
  readonly onError?: (error: unknown, phase: 'queue' | 'commit') => void
  /** Makes unguessable lease tokens. */
  readonly newToken?: () => string
}

const NAMES = [
  'prefix',
  'clock',
  'retentionMs',
  'waitMs',
  'putBackMs',
  'gatePollMs',
  'slowMs',
  'retryPort',
  'onError',
  'newToken',
] as const

export function resolvePlainOptions(given: PlainOptions | undefined): Readonly<Required<PlainOptions>> {
  const options = optionsObject('overPlainPorts', given, NAMES)
  const ms = (name: 'retentionMs' | 'waitMs' | 'putBackMs' | 'gatePollMs' | 'slowMs', fallback: Ms) =>
    numberOption(`overPlainPorts.${name}`, options[name], { min: 1, default: fallback })
  return Object.freeze({
    prefix: options.prefix ?? 'work:',
    clock: options.clock ?? systemClock,
    retentionMs: ms('retentionMs', 86_400_000),
    waitMs: ms('waitMs', 3_600_000),
    putBackMs: ms('putBackMs', 1000),
    gatePollMs: ms('gatePollMs', 1000),
    slowMs: ms('slowMs', 50),
    retryPort: functionOption<RetryPort>('overPlainPorts.retryPort', options.retryPort, (call) => call()),
    onError: functionOption('overPlainPorts.onError', options.onError, () => undefined),
    newToken: functionOption('overPlainPorts.newToken', options.newToken, newToken),
  })
}

import { functionOption, integerOption, OptionTypeError, oneOfOption, optionsObject } from '../../core/options.js'
import { type Clock, isClock, type Random, systemClock } from '../../core/time/clock.js'
import type { StacksOptions, StacksWarning } from './api.js'
import type { StacksBackend } from './backend.js'

const MAX_DOCUMENT_BYTES = 16 * 1_048_576

/** What `openStacks` takes. Clock and chance are for tests and simulations. */
export interface OpenStacksOptions extends StacksOptions {
  readonly backend: StacksBackend
  readonly clock?: Clock
  readonly random?: Random
}

/** Checked, with every default in its place. */
export type ResolvedStacksOptions = Required<OpenStacksOptions>

export function resolveStacksOptions(given: OpenStacksOptions): ResolvedStacksOptions {
  const options = optionsObject('openStacks', given, [
    'backend',
    'clock',
    'random',
    'home',
    'watcherLeaseMs',
    'maxDocumentBytes',
    'differentWatchers',
    'onWarning',
  ])
  if (typeof options.backend?.begin !== 'function')
    throw new OptionTypeError('openStacks.backend', 'a backend such as memoryStacks()', options.backend)
  const clock = options.clock ?? systemClock
  if (!isClock(clock)) throw new OptionTypeError('openStacks.clock', 'a Clock', clock)
  return {
    backend: options.backend,
    clock,
    random: functionOption('openStacks.random', options.random, Math.random),
    home: options.home ?? process.cwd(),
    watcherLeaseMs: integerOption('openStacks.watcherLeaseMs', options.watcherLeaseMs, { min: 100, default: 10_000 }),
    maxDocumentBytes: integerOption('openStacks.maxDocumentBytes', options.maxDocumentBytes, {
      min: 1_024,
      default: MAX_DOCUMENT_BYTES,
    }),
    differentWatchers: oneOfOption(
      'openStacks.differentWatchers',
      options.differentWatchers,
      ['refuse', 'allow'],
      'refuse',
    ),
    onWarning: functionOption('openStacks.onWarning', options.onWarning, emitWarning),
  }
}

function emitWarning({ code, message, error }: StacksWarning): void {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.emitWarning(message, { code, detail })
}

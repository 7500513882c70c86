import { OptionTypeError } from '../../core/options.js'
import { callable, clock, integer, oneOf, readOptions, text } from '../../core/read-options.js'
import { type Clock, type Random, systemClock } from '../../core/time/clock.js'
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
  return readOptions('openStacks', given, {
    backend: (path: string, backend: unknown) => {
      if (typeof (backend as StacksBackend | undefined)?.begin === 'function') return backend as StacksBackend
      throw new OptionTypeError(path, 'a backend such as memoryStacks()', backend)
    },
    clock: clock(systemClock),
    random: callable(Math.random),
    home: text(process.cwd()),
    watcherLeaseMs: integer({ min: 100, default: 10_000 }),
    maxDocumentBytes: integer({ min: 1_024, default: MAX_DOCUMENT_BYTES }),
    differentWatchers: oneOf(['refuse', 'allow'], 'refuse'),
    onWarning: callable(emitWarning),
  })
}

function emitWarning({ code, message, error }: StacksWarning): void {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.emitWarning(message, { code, detail })
}

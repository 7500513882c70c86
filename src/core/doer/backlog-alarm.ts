import { functionOption, numberOption, OptionError } from '../options.js'
import type { Clock } from '../time/clock.js'
import type { Ms } from '../time/time.js'

/** What a bounded doer says of its backlog. */
export interface BacklogInfo {
  /** Tasks that wait for a place. */
  readonly pending: number
  readonly running: number
  /** How long there has been at least one waiting, without a break. */
  readonly nonEmptyForMs: Ms
}

/** When to report that tasks keep waiting. */
export interface BacklogOptions<Info> {
  /** Called once tasks have been waiting without a break for `backlogAfterMs`. What it throws is ignored. */
  readonly onBacklog?: (info: Info) => void
  /** Needed by `onBacklog`. */
  readonly backlogAfterMs?: Ms
  /** Calls again this often while it lasts. Default: once until the backlog has been empty. */
  readonly backlogEveryMs?: Ms
}

/** Watches the length of a list; has a timer only while the list is not empty. */
export interface BacklogAlarm {
  /** To be called after every change. */
  pending(count: number): void
}

const SILENT: BacklogAlarm = Object.freeze({ pending: () => {} })

/** An alarm over a list that is empty now. `owner` is the function whose options these are, for its error messages. */
export function backlogAlarm<Info>(
  owner: string,
  options: BacklogOptions<Info>,
  clock: Clock,
  inform: (nonEmptyForMs: Ms) => Info,
): BacklogAlarm {
  const afterMs = numberOption(`${owner}.backlogAfterMs`, options.backlogAfterMs, { min: 0, default: 0 })
  const everyMs = numberOption(`${owner}.backlogEveryMs`, options.backlogEveryMs, { above: 0, default: 1 })
  if (options.onBacklog === undefined) return SILENT
  const onBacklog = functionOption<(info: Info) => void>(`${owner}.onBacklog`, options.onBacklog)
  if (options.backlogAfterMs === undefined)
    throw new OptionError(`${owner}.backlogAfterMs`, 'given where onBacklog is: ms until the first call', undefined)

  let since: Ms | undefined
  let cancel: (() => void) | undefined

  function ring(): void {
    cancel = options.backlogEveryMs === undefined ? undefined : clock.after(everyMs, ring)
    try {
      onBacklog(inform(clock.monotonic() - since!))
    } catch {
      // An observer; the tasks must not suffer from it.
    }
  }

  return {
    pending(count) {
      if (count > 0 && since === undefined) {
        since = clock.monotonic()
        cancel = clock.after(afterMs, ring)
      } else if (count === 0 && since !== undefined) {
        since = undefined
        cancel?.()
        cancel = undefined
      }
    },
  }
}

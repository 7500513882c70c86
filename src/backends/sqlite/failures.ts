import { listedError } from '../../core/error-text.js'
import type { FailureClass } from '../../core/failure.js'
import type { At } from '../../core/time.js'
import type { FailureGroup } from '../../ports/ledger.js'
import type { Statements } from './sql.js'

/** Dead and retrying items that failed alike: one aggregate, and for each group that is shown a look at its last. */
export function failuresOf(sql: Statements, limit: number, now: At): FailureGroup[] {
  return sql.failures.all(now, limit).map(([fingerprint, of, type, dead, retrying, firstAt, lastAt]) => {
    const ofDead = dead > 0 ? sql.deadSample.get(fingerprint, of, type, now) : undefined
    const ofRetrying = retrying > 0 ? sql.retryingSample.get(fingerprint, of, type) : undefined
    const [id, error] = [ofDead, ofRetrying].reduce((a, b) =>
      a === undefined || (b !== undefined && b[2] > a[2]) ? b : a,
    ) ?? ['', '']
    return {
      fingerprint,
      ...(of === null ? {} : { class: of as FailureClass }),
      type,
      dead,
      retrying,
      firstAt,
      lastAt,
      sample: { id, error: listedError(error ?? '') },
    }
  })
}

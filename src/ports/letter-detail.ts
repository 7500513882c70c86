import type { FailureClass } from '../core/failure/failure.js'

/** What streams keep with a dead letter beside its body and its error: the `detail` of a `DeadLetterSink`. */
export interface LetterDetail {
  readonly class?: FailureClass
  /** The name of the error's class. */
  readonly errorName?: string
  /** Deliveries that ran. */
  readonly attempts?: number
  readonly subject?: string
  /** The hopper that gave it up. */
  readonly source?: string
}

export function writeLetterDetail(detail: LetterDetail): string {
  return JSON.stringify(detail)
}

/** What can be read of a detail. A detail in another form is no error: its fields read as absent. */
export function readLetterDetail(text: string | undefined): LetterDetail {
  const read = fieldsOf(text)
  const string = (name: string) => (typeof read[name] === 'string' ? { [name]: read[name] } : {})
  return {
    ...(CLASSES.has(read['class']) ? { class: read['class'] as FailureClass } : {}),
    ...string('errorName'),
    ...string('subject'),
    ...string('source'),
    ...(typeof read['attempts'] === 'number' ? { attempts: read['attempts'] } : {}),
  }
}

const CLASSES: ReadonlySet<unknown> = new Set<FailureClass>([
  'unclassified',
  'retryable',
  'poison',
  'invalidForState',
  'drop',
])

function fieldsOf(text: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text ?? '{}')
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

import { createHash } from 'node:crypto'
import { errorMessage, errorName } from '../text/error-text.js'
import { classify } from './classify.js'
import { framesOf } from './error-detail.js'
import { type FailureClass, OVERRULED, type Verdict } from './failure.js'
import { stackFrame } from './stack-frame.js'

/** As much of a message as is needed to distinguish failures. */
const MESSAGE_CHARACTERS = 1000
/** As much of a stack as is searched for a frame of the user's own. */
const STACK_CHARACTERS = 16_000

/**
 * A short, stable name for "the same failure again": 16 hex digits of its class, the rule that decided it (`http-503`), its
 * error name, its message without the parts that change (numbers, ids, quoted values, addresses) and the first stack frame of
 * the user's own code, without line numbers, so that a deploy does not make old failures look new. Never throws; cheap
 * whatever the size.
 *
 * @param decided its class, or its class and rule, where something else than the error itself decided them.
 */
export function fingerprint(
  error: unknown,
  decided: FailureClass | Pick<Verdict, 'class' | 'rule' | 'overruled'> = classify(error),
): string {
  const message = errorMessage(error)
  const verdict = typeof decided === 'string' ? { class: decided, rule: classify(error).rule } : decided
  const { class: failureClass, rule } = verdict
  // The error's own rule, too: an `onFailure` that decides for eight HTTP statuses would otherwise make them one.
  const own = verdict.overruled ?? (rule === OVERRULED ? classify(error).rule : rule)
  return digest([failureClass, rule, own, errorName(error), normaliseMessage(message), ownFrame(error, message) ?? ''])
}

/** The same for what died without a run that failed: nothing is known of it but its type, how it ended, and in which words. */
export function endingFingerprint(end: {
  readonly class: FailureClass
  readonly ending: string
  readonly type: string
  readonly error: string
}): string {
  return digest([end.class, end.ending, end.type, normaliseMessage(end.error)])
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}

/** Two are nearly always enough: one that changes something, and one that finds nothing more. */
const MOST_PASSES = 8

// Order matters: the wider patterns first, so that a number inside a URL is not replaced before the URL is.
const CHANGING_PARTS: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>)]+/gi, '<url>'],
  [/(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+/g, '<email>'],
  [/"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|[“«][^”»\n]*[”»]/g, '<value>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/g, '<time>'],
  [/\b0x[0-9a-f]+\b/gi, '<id>'],
  // Ids and tokens: long, with a letter right after a digit. `order_handler_v2` is a word, and `order-12345` a word and a
  // number: taken whole, it would read differently from 1 digit more on.
  [/(?<![\w-])(?=(?:[a-z_-]*\d){3})(?=[\w-]*\d[a-z])[\w-]{12,}/gi, '<id>'],
  [/(?<![a-z0-9])(?=[a-z0-9]*\d[a-z])[a-z0-9]{10,}(?![a-z0-9])/gi, '<id>'],
  [/(?<![a-z0-9])(?=[0-9a-f]*\d[a-f])[0-9a-f]{7,}(?![a-z0-9])/gi, '<id>'],
  [/\d+(?:[.,:]\d+)*/g, '<n>'],
  [/\s+/g, ' '],
]

/** The message with its changing parts replaced: what stays is what went wrong, not to whom or when. */
export function normaliseMessage(message: string): string {
  let text = message.slice(0, MESSAGE_CHARACTERS).trim()
  // A part may show only once its neighbour has gone (`0''` is a number and then a quoted value): again until nothing does.
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const before = text
    for (const [part, placeholder] of CHANGING_PARTS) text = text.replace(part, placeholder)
    text = text.trim()
    if (text === before) break
  }
  return text
}

/** The innermost frame that is neither Node's nor a dependency's: `function@folder/file`. */
export function ownFrame(error: unknown, message: string = errorMessage(error)): string | undefined {
  for (const line of framesOf(error, message, STACK_CHARACTERS).split('\n')) {
    const frame = readFrame(line)
    if (frame !== undefined) return frame
  }
  return undefined
}

function readFrame(line: string): string | undefined {
  const frame = stackFrame(line)
  if (frame === undefined || !frame.isOwn) return undefined
  // Two parts of the path identify a file; more would name the release folder of each deploy.
  const file = frame.place
    .replace(/(?::\d+){1,2}$/, '')
    .replace(/[?#].*$/, '')
    .split(/[\\/]/)
    .slice(-2)
    .join('/')
  return `${normaliseMessage(frame.caller.replace(/^async /, ''))}@${normaliseMessage(file)}`
}

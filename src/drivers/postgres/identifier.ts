import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import { describeValue } from '../../core/text/describe-value.js'

/** PostgreSQL cuts longer names off without a word, and two systems would then share one schema. */
const MAX_NAME_BYTES = 63
const UNSTORABLE = /\0|\p{Surrogate}/u

/** A name that PostgreSQL cannot keep as it is. */
class BadIdentifierError extends MillraceError {
  constructor(option: string, name: string, why: string) {
    super('BAD_NAME', `${option}: ${describeValue(name)} cannot be a name in PostgreSQL: ${why}`, {
      facts: { option, why },
    })
  }
}

/** The name itself if PostgreSQL keeps it exactly; otherwise an error that says why not. Any other text is allowed. */
export function checkIdentifier(option: string, name: unknown): string {
  if (typeof name !== 'string' || name === '') throw new OptionTypeError(option, 'a non-empty string', name)
  if (UNSTORABLE.test(name)) {
    throw new BadIdentifierError(option, name, 'it holds U+0000 or half of a surrogate pair. Leave those out.')
  }
  const bytes = Buffer.byteLength(name)
  if (bytes > MAX_NAME_BYTES) {
    throw new BadIdentifierError(
      option,
      name,
      `it takes ${bytes} bytes, and at most ${MAX_NAME_BYTES} are kept. Shorten it.`,
    )
  }
  return name
}

/** A name as it is written in a statement. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A text as it is written in a statement, for the few places that take no parameters. */
export function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return text.includes('\\') ? ` E${quoted}` : quoted
}

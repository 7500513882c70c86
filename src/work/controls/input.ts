import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from '../../core/error.js'
import type { Maybe } from '../../core/time.js'

/** The input of work is not what the schema of its type says. Poison: the same input will never be valid. */
export class InvalidInputError extends MillraceError {
  readonly type: string
  readonly issues: readonly StandardSchemaV1.Issue[]

  constructor(type: string, issues: readonly StandardSchemaV1.Issue[]) {
    super('SCHEMA_MISMATCH', `The input of work "${type}" is not valid: ${issues.map(issueText).join('; ')}`, {
      facts: { type, issues: issues.length },
    })
    this.type = type
    this.issues = issues
  }
}

/** What a schema made of an input, or what is wrong with it. */
export type CheckedInput = { readonly value: unknown } | { readonly problem: InvalidInputError }

/** Holds an input against the schema of its type. A schema that fails itself throws, or rejects. */
export function checkInput(type: string, schema: StandardSchemaV1, input: unknown): Maybe<CheckedInput> {
  const answer = schema['~standard'].validate(input)
  return answer instanceof Promise ? answer.then((result) => readAnswer(type, result)) : readAnswer(type, answer)
}

/** Whether it can be asked to validate. */
export function isSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<StandardSchemaV1>)['~standard']
  return typeof standard?.validate === 'function'
}

function readAnswer(type: string, result: StandardSchemaV1.Result<unknown>): CheckedInput {
  return result.issues === undefined ? { value: result.value } : { problem: new InvalidInputError(type, result.issues) }
}

function issueText({ path = [], message }: StandardSchemaV1.Issue): string {
  const where = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return where === '' ? message : `${where}: ${message}`
}

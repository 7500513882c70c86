import type { StandardSchemaV1 } from '@standard-schema/spec'
import { MillraceError } from '../../core/error.js'
import type { MaybePromise } from '../../core/time/time.js'
import { isNode, type ResultNode } from '../settle/result-tree.js'
import { type BuiltDependency, DEPENDENCY_TYPE } from './dependency.js'
import type { Work } from './work.js'

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

/** Checks an input with the schema of its type. Throws or rejects only when the schema itself fails. */
export function checkInput(type: string, schema: StandardSchemaV1, input: unknown): MaybePromise<CheckedInput> {
  const answer = schema['~standard'].validate(input)
  return answer instanceof Promise ? answer.then((result) => readAnswer(type, result)) : readAnswer(type, answer)
}

function readAnswer(type: string, result: StandardSchemaV1.Result<unknown>): CheckedInput {
  return result.issues === undefined ? { value: result.value } : { problem: new InvalidInputError(type, result.issues) }
}

function issueText({ path = [], message }: StandardSchemaV1.Issue): string {
  const where = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return where === '' ? message : `${where}: ${message}`
}

type SchemaOf = (work: Work) => StandardSchemaV1 | undefined

/**
 * Checks the inputs of works, and of those that gates among them will queue. Throws, or rejects with, the first that is not
 * valid.
 */
export function checkWorks(works: Iterable<Work>, schemaOf: SchemaOf): MaybePromise<void> {
  const waits: Promise<CheckedInput>[] = []
  const check = (work: Work): void => {
    for (const held of heldBy(work)) check(held)
    const schema = schemaOf(work)
    // What it refers to is not there yet: it is checked when it runs.
    if (schema === undefined || work.references !== undefined) return
    const checked = checkInput(work.type, schema, work.input)
    if (checked instanceof Promise) waits.push(checked)
    else refuse(checked)
  }
  try {
    for (const work of works) check(work)
  } catch (error) {
    // The works are refused already: what the other schemas answer does not matter.
    for (const wait of waits) wait.catch(() => undefined)
    throw error
  }
  if (waits.length === 0) return undefined
  return Promise.all(waits).then((all) => all.forEach(refuse))
}

/** The same for everything that a handler queues, before any of it is planned. */
export function checkQueued(root: ResultNode, schemaOf: SchemaOf): MaybePromise<void> {
  return checkWorks(worksOf(root, new Set()), schemaOf)
}

function* worksOf(node: ResultNode, seen: Set<ResultNode>): IterableIterator<Work> {
  if (seen.has(node)) return
  seen.add(node)
  // What is queued later is checked now too, while the handler can still fail.
  for (const item of [...node.items, ...node.links.flatMap(({ items }) => items)]) {
    if (isNode(item)) yield* worksOf(item, seen)
    else yield item as Work
  }
}

/** What a gate queues when it fires. */
function heldBy({ type, input }: Work): readonly Work[] {
  if (type !== DEPENDENCY_TYPE) return []
  const queue: unknown = (input as Partial<BuiltDependency> | undefined)?.queue
  return Array.isArray(queue) ? (queue as readonly Work[]) : []
}

function refuse(checked: CheckedInput): void {
  if ('problem' in checked) throw checked.problem
}

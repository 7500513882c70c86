import { MillraceError } from '../../core/error.js'
import type { ItemView } from '../../ports/inspect.js'
import type { ClaimedItem } from '../../ports/item.js'
import type { AnyWorkType, Work } from '../define/work.js'
import type { EngineContext } from '../engine-context.js'
import { referredIds, withResults } from '../settle/result-references.js'
import { isWork } from '../settle/result-tree.js'

/** A result that `ctx.results` was asked for is not there. */
class NoResultError extends MillraceError {
  constructor(id: string, why: string) {
    super('NO_RESULT', `${id} has no result: ${why}. ctx.states([…]) shows how items ended, whatever they returned.`, {
      facts: { id },
    })
  }
}

/** `ctx.results` was asked for other works than those that the item waited for. */
export class NotDependentsError extends MillraceError {
  constructor(expected: string, dependents: readonly string[]) {
    super(
      'NOT_DEPENDENTS',
      `ctx.results(works): ${expected}. The item waited for ${dependents.length}: ${dependents.join(', ')}.`,
      {
        facts: { dependents: dependents.length },
      },
    )
  }
}

/** What reading results needs of a system. */
interface ResultReader {
  readonly ledger: Pick<EngineContext['ledger'], 'read'>
  readonly registry: Pick<EngineContext['registry'], 'codecOf'>
  readonly o: Pick<EngineContext['o'], 'codec'>
}

interface Wanted {
  readonly id: string
  readonly type?: string
}

/** The results of what an item waited for, or of works that are named by themselves. One read for all. */
export async function dependentsResults(
  context: ResultReader,
  { envelope: { dependents = [] } }: ClaimedItem,
  of: readonly (AnyWorkType | Work)[] | undefined,
): Promise<readonly unknown[]> {
  const wanted = of === undefined ? dependents.map((id) => ({ id })) : of.map((one, i) => wantedBy(one, i))
  function wantedBy(one: AnyWorkType | Work, i: number): Wanted {
    if (isWork(one)) return one
    if (typeof one?.type !== 'string') throw new NotDependentsError('give it work types or works', dependents)
    const id = dependents[i]
    if (id === undefined || of?.length !== dependents.length) {
      throw new NotDependentsError(`it names ${of?.length} types, one is needed for each item`, dependents)
    }
    return { id, type: one.type }
  }
  const views = await context.ledger.read(wanted.map(({ id }) => id))
  return wanted.map(({ id, type }: Wanted, i) => {
    const view = views[i]
    if (view === undefined) throw new NoResultError(id, 'it is not known, or no longer kept')
    if (type !== undefined && view.envelope.type !== type) {
      throw new NotDependentsError(`item ${i + 1} is of type "${view.envelope.type}", not "${type}"`, dependents)
    }
    if (view.status !== 'completed') throw new NoResultError(id, `it is ${view.status}${reasonOf(view)}`)
    return decoded(context, view)
  })
}

/** The input of an item, with the results that `.next((done) => …)` referred to in it. */
export async function filledInput(context: ResultReader, input: unknown, mark: string): Promise<unknown> {
  const ids = referredIds(input, mark)
  const views = await context.ledger.read(ids)
  const results = new Map<string, unknown>()
  for (const [i, id] of ids.entries()) {
    const view = views[i]
    if (view === undefined) throw new NoResultError(id, 'it is no longer kept')
    if (view.status === 'completed') results.set(id, decoded(context, view))
  }
  return withResults(input, mark, results)
}

function decoded({ registry, o }: ResultReader, { envelope, result }: ItemView): unknown {
  return result === undefined ? undefined : registry.codecOf(envelope.type, o.codec).parse(result)
}

function reasonOf({ error }: ItemView): string {
  return error === undefined ? '' : ` (${error})`
}

import type { MaybePromise } from '../../core/time/time.js'
import type { Batch, BatchedItem } from '../../work/define/define-batch-work.js'
import { type BuiltDependency, DEPENDENCY_TYPE } from '../../work/define/dependency.js'
import type { AnyWorkBuilder, GroupItem, Work, WorkContext } from '../../work/define/work.js'
import type { WorkOptions } from '../../work/define/work-options.js'
import { type BatchOutcome, isFail } from '../../work/run/batch-outcome.js'
import { isNode, type ResultNode } from '../../work/settle/result-tree.js'
import type { History, SimulatedRun } from './history.js'
import type { Journal } from './journal.js'

type Outcome = NonNullable<SimulatedRun['outcome']>

/** Where the runs of one process are written down. */
export interface RunWatcher {
  readonly name: string
  readonly history: History
  readonly journal: Journal
  /** The queue of this process that stands for the one in the type's options. */
  readonly queueFor: (queue: NonNullable<WorkOptions['queue']>) => NonNullable<WorkOptions['queue']>
  /** A run of this item begins; what it returns is called when its handler has ended. */
  readonly began: (id: string, type: string) => () => void
}

/** The same work type, with every run of its handler written down. */
export function watchedWork(builder: AnyWorkBuilder, watcher: RunWatcher): AnyWorkBuilder {
  const { def } = builder
  const { queue } = def.options
  const run = (input: unknown, ctx: WorkContext): Promise<unknown> =>
    watched(
      watcher,
      def.type,
      [ctx],
      (began) => watcher.history.started(began),
      () => def.run(input, ctx),
      (returned) => [{ kind: 'returned', children: isNode(returned) ? takeChildren(returned) : [] }],
    )
  const options = queue === undefined ? def.options : { ...def.options, queue: watcher.queueFor(queue) }
  return Object.assign((input: unknown) => builder(input), {
    type: builder.type,
    def: Object.freeze({
      ...def,
      options: Object.freeze(options),
      run,
      ...(def.batch === undefined ? {} : { batch: watchedBatch(def.type, def.batch, watcher) }),
    }),
  })
}

function watchedBatch(type: string, batch: Batch, watcher: RunWatcher): Batch {
  const run: Batch['run'] = (inputs, items) =>
    watched(
      watcher,
      type,
      items?.() ?? [],
      (began) => watcher.history.startedInBatch(began),
      () => batch.run(inputs, items),
      ({ outcomes }) => outcomes.map(outcomeOf),
    )
  return Object.freeze({ ...batch, run })
}

function outcomeOf(outcome: BatchOutcome): Outcome {
  return isFail(outcome) ? { kind: 'threw', error: outcome.error } : { kind: 'returned', children: [] }
}

/** Calls a handler for one item, or for those of a batch, and writes down what came of each. */
async function watched<R>(
  { history, journal, name, began }: RunWatcher,
  type: string,
  items: readonly BatchedItem[],
  start: History['started'],
  call: () => MaybePromise<R>,
  outcomesOf: (returned: R) => readonly Outcome[],
): Promise<R> {
  const runs = items.map(({ id, fence, attempt, groupId, signal }) => {
    journal.write(name, `▶ ${type} ${id}#${fence}, attempt ${attempt}`)
    const run = start({ id, fence, attempt, groupId, type, process: name })
    signal.addEventListener('abort', () => history.notified(run, signal.reason), { once: true })
    return { run, ended: began(id, type) }
  })
  const end = (outcomeAt: (index: number) => Outcome) => {
    for (const [index, { run, ended }] of runs.entries()) {
      const outcome = outcomeAt(index)
      journal.write(name, `■ ${run.id}#${run.fence} ${outcomeText(outcome)}`)
      history.ended(run, outcome)
      ended()
    }
  }
  let returned: R
  try {
    returned = await call()
  } catch (error) {
    end(() => ({ kind: 'threw', error }))
    throw error
  }
  const outcomes = outcomesOf(returned)
  end((index) => outcomes[index]!)
  return returned
}

function outcomeText(outcome: Outcome): string {
  if (outcome.kind === 'returned') return 'returned'
  return `threw ${outcome.error instanceof Error ? outcome.error.name : typeof outcome.error}`
}

/**
 * Work without the definition it was built with. In every process another definition stands under the same name, the one whose
 * runs are written down, and work that brings its own would be taken for another type.
 */
export function plainWork({ id, type, input, references }: Work): Work {
  if (type !== DEPENDENCY_TYPE) return { id, type, input, ...(references === undefined ? {} : { references }) }
  const built = input as BuiltDependency
  return { id, type, input: { ...built, queue: built.queue.map(plainWork) } }
}

/** Ids of the work that a returned instruction queues immediately. Makes all of its work plain, also what comes later. */
function takeChildren(root: ResultNode): readonly string[] {
  const ids: string[] = []
  const plain = (items: readonly GroupItem[], isNow: boolean): readonly GroupItem[] =>
    items.map((item) => {
      if (isNode(item)) {
        walk(item, isNow)
        return item
      }
      const work = item as Work
      if (isNow) ids.push(work.id)
      return plainWork(work)
    })
  const walk = (node: ResultNode, isNow: boolean): void => {
    // The instruction is known by its identity, so it stays the same object.
    Object.assign(node, { items: plain(node.items, isNow) })
    for (const link of node.links) Object.assign(link, { items: plain(link.items, false) })
  }
  walk(root, true)
  return ids
}

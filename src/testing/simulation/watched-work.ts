import { type BuiltDependency, DEPENDENCY_TYPE } from '../../work/define/dependency.js'
import type { AnyWorkBuilder, GroupItem, Work, WorkContext } from '../../work/define/work.js'
import type { WorkOptions } from '../../work/define/work-options.js'
import { isNode, type ResultNode } from '../../work/settle/result-tree.js'
import type { History } from './history.js'
import type { Journal } from './journal.js'

/** Where the runs of one process are written down. */
export interface RunWatcher {
  readonly name: string
  readonly history: History
  readonly journal: Journal
  /** The queue of this process that stands for the one in the type's options. */
  readonly queueFor: (queue: NonNullable<WorkOptions['queue']>) => NonNullable<WorkOptions['queue']>
}

/** The same work type, with every run of its handler written down. */
export function watchedWork(builder: AnyWorkBuilder, watcher: RunWatcher): AnyWorkBuilder {
  const { def } = builder
  const { queue } = def.options
  const run = async (input: unknown, ctx: WorkContext): Promise<unknown> => {
    const { history, journal, name } = watcher
    const { id, fence, attempt, groupId } = ctx
    journal.write(name, `▶ ${def.type} ${id}#${fence}, attempt ${attempt}`)
    const began = history.started({ id, fence, attempt, groupId, type: def.type, process: name })
    ctx.signal.addEventListener('abort', () => history.told(began, ctx.signal.reason), { once: true })
    try {
      const returned = await def.run(input, ctx)
      journal.write(name, `■ ${id}#${fence} returned`)
      history.ended(began, { kind: 'returned', children: isNode(returned) ? takeChildren(returned) : [] })
      return returned
    } catch (error) {
      journal.write(name, `■ ${id}#${fence} threw ${error instanceof Error ? error.name : typeof error}`)
      history.ended(began, { kind: 'threw', error })
      throw error
    }
  }
  const options = queue === undefined ? def.options : { ...def.options, queue: watcher.queueFor(queue) }
  return Object.assign((input: unknown) => builder(input), {
    type: builder.type,
    def: Object.freeze({ ...def, options: Object.freeze(options), run }),
  })
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

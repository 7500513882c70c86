import { isBranded } from '../../core/brand.js'
import { MillraceError } from '../../core/error.js'
import { checkedCondition } from '../define/condition.js'
import { isHandle } from '../define/handle-brand.js'
import type { DependencyCondition, GroupItem, ResultOptions, Work, WorkInstanceOptions } from '../define/work.js'
import { referenceTo, withStoredReferences } from './result-references.js'

const NODE: unique symbol = Symbol.for('millrace.result') as never

const NOTHING: readonly GroupItem[] = Object.freeze([])
const NO_LINKS: readonly Link[] = Object.freeze([])

/** One `.next`: what is queued once what came before meets the condition. */
export interface Link {
  readonly items: readonly GroupItem[]
  readonly condition: DependencyCondition
  readonly itemOptions: WorkInstanceOptions | undefined
}

/** One instruction of a handler: the object behind a `WorkResult`. It has no `then`, and does nothing by itself. */
export class ResultNode {
  readonly [NODE] = true
  readonly kind: 'result' | 'queue' | 'void'
  /** A promise until the run that made it awaits it. */
  value: unknown
  readonly options: ResultOptions<unknown> | undefined
  readonly items: readonly GroupItem[]
  readonly itemOptions: WorkInstanceOptions | undefined
  #links: Link[] | undefined

  constructor(
    kind: 'result' | 'queue' | 'void',
    value?: unknown,
    options?: ResultOptions<unknown>,
    items: readonly GroupItem[] = NOTHING,
    itemOptions?: WorkInstanceOptions,
  ) {
    this.kind = kind
    this.value = value
    this.options = options
    this.items = items
    this.itemOptions = itemOptions
  }

  /** What comes after it, link by link. */
  get links(): readonly Link[] {
    return this.#links ?? NO_LINKS
  }

  /** Changes this very node and returns it: a chain is one instruction. */
  next(
    items: GroupItem | readonly GroupItem[] | ((results: readonly unknown[]) => Work | readonly Work[]),
    condition?: DependencyCondition,
    itemOptions?: WorkInstanceOptions,
  ): this {
    const link = {
      items: typeof items === 'function' ? this.#built(items) : listed(items, '.next'),
      condition: checkedCondition('.next condition', condition),
      itemOptions,
    }
    this.#links ??= []
    this.#links.push(link)
    return this
  }

  /** The works of a function that gets references to the results of what came before. */
  #built(build: (results: readonly unknown[]) => Work | readonly Work[]): readonly Work[] {
    const before = this.#links?.at(-1)?.items ?? this.items
    if (before.length === 0 || !before.every(isWork)) {
      throw new TypeError('.next((results) => …): only works have results, and works must come before it')
    }
    const built = listed(build(before.map(({ id }) => referenceTo(id))), '.next')
    if (!built.every(isWork)) throw new TypeError('.next((results) => …): the function must return work')
    return built.map(withStoredReferences)
  }
}

/** What a handler comes to that returns nothing. */
const NO_RESULT = new ResultNode('void')
Object.freeze(NO_RESULT)

/** Whether a handler returned an instruction. By its brand, which two copies of the package share. */
export function isNode(value: unknown): value is ResultNode {
  return isBranded(value, NODE)
}

/** Whether a handler goes on with what it returned. Awaiting a handle would wait for the item's group: it is refused instead. */
export function isAwaited(returned: unknown): returned is PromiseLike<unknown> {
  if (returned instanceof Promise) return true
  return typeof (returned as Partial<PromiseLike<unknown>> | null)?.then === 'function' && !isHandle(returned)
}

/** How many of these instructions are not part of what was returned. */
function unreturned(made: readonly ResultNode[], root: ResultNode): number {
  if (made.length === 1 && made[0] === root) return 0
  const reached = new Set<ResultNode>()
  const walk = (node: ResultNode): void => {
    if (reached.has(node)) return
    reached.add(node)
    for (const item of node.items) if (isNode(item)) walk(item)
    for (const { items } of node.links) for (const item of items) if (isNode(item)) walk(item)
  }
  walk(root)
  return made.filter((node) => !reached.has(node)).length
}

/** What the handler returned can be neither an instruction nor a result. */
export class NotAResultError extends MillraceError {
  constructor(type: string, returned: string, instead: string) {
    super('NOT_A_RESULT', `work "${type}" returned ${returned}. ${instead}`, { facts: { type, returned } })
  }
}

/** The handler made instructions and did not return them: they would silently be ignored. */
export class NotReturnedError extends MillraceError {
  constructor(type: string, count: number) {
    super(
      'NOT_RETURNED',
      `work "${type}" made ${count} instruction${count === 1 ? '' : 's'} that ${count === 1 ? 'was' : 'were'} not returned: ` +
        'write `return ctx.queue(…)`. Return several inside one ctx.queue([...]), and those of a batch one per item. ' +
        'If they are meant to do nothing, set strictReturn: false.',
      { facts: { type, count } },
    )
  }
}

/** Checks what a handler returned; throws what is wrong with it. */
export function checkReturned(
  type: string,
  returned: unknown,
  made: readonly ResultNode[],
  strict: boolean,
): ResultNode {
  const root = isNode(returned) ? returned : plainResult(type, returned)
  if (strict) {
    const count = unreturned(made, root)
    if (count > 0) throw new NotReturnedError(type, count)
  }
  return root
}

/** A plain value is the item's result, as if `ctx.result` had made it; nothing at all is none. */
export function plainResult(type: string, returned: unknown): ResultNode {
  if (returned === undefined) return NO_RESULT
  const what = unstorable(returned)
  if (what !== undefined) throw new NotAResultError(type, what.returned, what.instead)
  return new ResultNode('result', returned)
}

const QUEUE_IT = 'Return ctx.queue(…) with it to have it run, or the result that you awaited.'

/** Values that were meant as something else: stored as a result, the work in them would be lost. */
function unstorable(value: unknown): { readonly returned: string; readonly instead: string } | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') {
    return { returned: `a ${typeof value}`, instead: 'Return a value that can be stored, or an instruction of ctx.' }
  }
  if (isWork(value)) return { returned: 'work that nothing queues', instead: QUEUE_IT }
  if (isHandle(value)) return { returned: 'the handle of an item', instead: QUEUE_IT }
  if (!Array.isArray(value)) return undefined
  if (value.some((one) => isWork(one) || isHandle(one) || isNode(one))) {
    return { returned: 'a list of work, handles or instructions', instead: QUEUE_IT }
  }
  return undefined
}

/** Whether it is work, built and not yet enqueued. */
export function isWork(value: unknown): value is Work {
  if (typeof value !== 'object' || value === null) return false
  const { id, type } = value as Partial<Work>
  return typeof id === 'string' && id !== '' && typeof type === 'string' && type !== '' && 'input' in value
}

/** Refuses what is not work. */
export function checkWork(value: unknown): void {
  if (!isWork(value)) throw new TypeError('enqueue(work): work must come from a builder, like enqueue(add({ a: 1 }))')
}

/** One item or a list, checked. */
export function listed(items: GroupItem | readonly GroupItem[], where = 'ctx.queue'): readonly GroupItem[] {
  const list = Array.isArray(items) ? (items as readonly GroupItem[]) : [items as GroupItem]
  for (const item of list) {
    if (!isNode(item) && !isWork(item)) {
      throw new TypeError(
        `${where}(items): each item must be work (a builder called with its input) or a result of ctx`,
      )
    }
  }
  return list
}

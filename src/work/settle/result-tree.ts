import { MillraceError } from '../../core/error.js'
import { checkedCondition } from '../define/condition.js'
import type { DependencyCondition, GroupItem, ResultOptions, Work, WorkInstanceOptions } from '../define/work.js'

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
    items: GroupItem | readonly GroupItem[],
    condition?: DependencyCondition,
    itemOptions?: WorkInstanceOptions,
  ): this {
    const link = {
      items: listed(items, '.next'),
      condition: checkedCondition('.next condition', condition),
      itemOptions,
    }
    this.#links ??= []
    this.#links.push(link)
    return this
  }
}

/** Whether a handler returned an instruction. By its brand, which two copies of the package share. */
export function isNode(value: unknown): value is ResultNode {
  return typeof value === 'object' && value !== null && (value as { readonly [NODE]?: unknown })[NODE] === true
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

/** The handler returned something that is not an instruction. */
export class NotAResultError extends MillraceError {
  constructor(type: string) {
    super(
      'NOT_A_RESULT',
      `work "${type}" handler must return a WorkResult — ctx.result(...), ctx.queue(...), or ctx.void()`,
      { facts: { type } },
    )
  }
}

/** The handler made instructions and did not return them: they would silently be ignored. */
export class NotReturnedError extends MillraceError {
  constructor(type: string, count: number) {
    super(
      'NOT_RETURNED',
      `work "${type}" made ${count} instruction${count === 1 ? '' : 's'} that ${count === 1 ? 'was' : 'were'} not returned: ` +
        'return them inside ctx.queue([...]), or those of a batch one per item; ' +
        'or set strictReturn: false if they are meant to do nothing.',
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
  if (!isNode(returned)) throw new NotAResultError(type)
  if (strict) {
    const count = unreturned(made, returned)
    if (count > 0) throw new NotReturnedError(type, count)
  }
  return returned
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

import { MillraceError } from '../../core/error.js'
import { newId } from '../../core/ids.js'
import { numberOption, OptionTypeError, optionsObject } from '../../core/options.js'
import { GATE_POLL_MS } from '../../ports/limits.js'
import { isWork } from '../settle/result-tree.js'
import type { StoredItem, StoredLink } from '../settle/stored-tree.js'
import { checkedCondition, isTreeCondition } from './condition.js'
import { defineWork } from './define-work.js'
import type { DependencyCondition, StateCondition, Work, WorkContext, WorkResult } from './work.js'

/** The type of gates. Every system knows it. */
export const DEPENDENCY_TYPE = '@work/dependency'

/** Options of `dependency`. */
export interface DependencyOptions {
  /** What to wait for: works, or the ids of items. They may belong to any group, and need not exist yet. */
  readonly on: Work | string | readonly (Work | string)[]
  /** What to queue when the condition is met, into the gate's group. */
  readonly queue: Work | readonly Work[]
  /** Default `all-success`. */
  readonly config?: StateCondition
  /**
   * Where notifications can be lost (plain ports), the gate is polled this many ms after it was enqueued, then after twice as
   * long, up to a minute. Default 1000.
   */
  readonly poll?: number
  /** Give up after this long, in ms, from the moment at which the gate is enqueued. Default: never. */
  readonly timeout?: number
}

/** The input of a gate as `dependency` builds it. */
export interface BuiltDependency {
  readonly key: string
  readonly on: readonly string[]
  readonly queue: readonly Work[]
  readonly config: DependencyCondition
  readonly poll: number
  readonly timeout?: number
}

/** The input of a gate as it is stored: plain JSON. */
export interface DependencyInput {
  /** The gate's name. It never changes. */
  readonly key: string
  /** The items that it waits for. */
  readonly on: readonly string[]
  /** The names by which it counts them, where it waits for trees. */
  readonly members?: readonly string[]
  /** What it queues. */
  readonly queue: readonly StoredItem[]
  readonly config: DependencyCondition
  readonly poll: number
  readonly timeout?: number
  /** When it stops waiting, epoch ms. */
  readonly deadline?: number
  /** What comes after what it queues. */
  readonly next?: readonly StoredLink[]
}

/** Plain JSON, whatever the system's codec is: a gate stores text that is encoded already. */
const codec = Object.freeze({
  stringify: (value: unknown): string => JSON.stringify(value),
  parse: (text: string): unknown => JSON.parse(text),
})

const build = defineWork(
  DEPENDENCY_TYPE,
  (_: BuiltDependency, __: WorkContext): WorkResult<void, void> => {
    // The engine runs gates itself: only it knows what a gate has decided.
    throw new MillraceError('NOT_A_HANDLER', 'A gate has no handler: enqueue it with a system.')
  },
  { retry: { attempts: 1 }, strictReturn: false, codec },
)

/** The definition that every system has. */
export const dependencyDefinition = build.def

const NAMES = ['on', 'queue', 'config', 'poll', 'timeout'] as const satisfies readonly (keyof DependencyOptions)[]

/**
 * A gate: work that waits for other items and then queues more, once in the whole fleet. It holds no place in a doer while it
 * waits. When its condition can no longer be met, it is dead immediately (`dependency: cannot be satisfied [...]`), and also when
 * its time is up; what it would have queued never runs, and its group completes.
 *
 * @example
 * ```ts
 * const [a, b] = [resize({ id: 1 }), resize({ id: 2 })]
 * w.enqueue(a)
 * w.enqueue(b)
 * await w.enqueue(dependency({ on: [a, b], queue: publish({ album: 7 }), timeout: 60_000 }))
 * ```
 */
export function dependency(options: DependencyOptions): Work<typeof DEPENDENCY_TYPE, void, void> {
  const given = optionsObject('dependency', options, NAMES)
  const config = checkedCondition('dependency config', given.config)
  if (isTreeCondition(config)) {
    throw new OptionTypeError(
      'dependency config',
      "'all-done', 'all-success' or { count }: only .next waits for trees",
      {
        of: 'tree',
      },
    )
  }
  const timeout = given.timeout
  return build({
    key: newId(),
    on: [...new Set(listOf(given.on).map((one) => idOf(one)))],
    queue: listOf(given.queue).map((one) => workOf(one)),
    config,
    poll: numberOption('dependency poll', given.poll, { above: 0, default: GATE_POLL_MS }),
    ...(timeout === undefined ? {} : { timeout: numberOption('dependency timeout', timeout, { min: 0 }) }),
  }) as Work<typeof DEPENDENCY_TYPE, void, void> // A gate has no result, and contributes nothing.
}

function listOf<T>(given: T | readonly T[]): readonly T[] {
  return Array.isArray(given) ? (given as readonly T[]) : [given as T]
}

function idOf(one: Work | string): string {
  if (typeof one === 'string' && one !== '') return one
  if (isWork(one)) return one.id
  throw new OptionTypeError('dependency on', 'works, or ids of items', one)
}

function workOf(one: Work): Work {
  if (isWork(one)) return one
  throw new OptionTypeError('dependency queue', 'works (builders called with their input)', one)
}

import type { ItemState } from 'millrace/ports'
import type { WritStand } from './guild.js'
import type { Effect } from './outside.js'
import { EFFECTS, FEEDS, FLOUR, ORDERS, TYPES, WRITS } from './plan.js'

/** An item, as far as the books care. */
export interface BookedItem {
  readonly id: string
  readonly type: string
  readonly state: ItemState
  readonly attempt: number
  readonly class?: string
  readonly error?: string
}

/** Everything there is to hold against the plan, read from the files. */
export interface Books {
  readonly items: readonly BookedItem[]
  readonly effects: readonly Effect[]
  readonly board: ReadonlyMap<string, string>
  readonly writs: readonly WritStand[]
}

const ENDED: ReadonlySet<ItemState> = new Set(['completed', 'dead', 'cancelled'])

export function isOpen({ state }: Pick<BookedItem, 'state'>): boolean {
  return !ENDED.has(state)
}

/** Whether nothing moves any more: all that was accepted has ended (the schedule may go on), and no writ goes on by itself. */
export function isSettled({ items, writs }: Pick<Books, 'items' | 'writs'>): boolean {
  const fed = items.filter(({ type, state }) => type === 'feed-sourdough' && state === 'completed').length
  const moves = items.some((item) => item.type !== 'feed-sourdough' && isOpen(item))
  const isSeeded = ORDERS.every(({ customer }) => items.some(({ id }) => id === `order/${customer}`))
  return isSeeded && !moves && fed >= FEEDS && writs.length > 0 && writs.every(({ isAtRest }) => isAtRest)
}

/** Whether all orders have come to their end. The guild has its turn after them. */
export function areOrdersDone(items: readonly BookedItem[]): boolean {
  const moves = items.some((item) => !BESIDE.has(item.type) && isOpen(item))
  return !moves && ORDERS.every(({ customer }) => items.some(({ id }) => id === `order/${customer}`))
}

/** What is no part of an order. */
const BESIDE: ReadonlySet<string> = new Set(['feed-sourdough', 'spider.engine'])

/** What became of a type. */
export interface TypeTotal {
  readonly type: string
  readonly items: number
  readonly completed: number
  readonly dead: number
  readonly retries: number
}

/** By type, in the order of the plan; types that nobody planned come last. */
export function totals(items: readonly BookedItem[]): readonly TypeTotal[] {
  const types = new Set([...TYPES.map(({ type }) => type), ...items.map(({ type }) => type)])
  return [...types].map((type) => {
    const own = items.filter((item) => item.type === type)
    return {
      type,
      items: own.length,
      completed: own.filter(({ state }) => state === 'completed').length,
      dead: own.filter(({ state }) => state === 'dead').length,
      retries: own.reduce((sum, { attempt }) => sum + attempt - 1, 0),
    }
  })
}

/** What is wrong with a type, in words; undefined: it is as planned. */
export function problemOf(total: TypeTotal, writs: readonly WritStand[]): string | undefined {
  const plan = TYPES.find(({ type }) => type === total.type)
  if (plan === undefined) return `${total.type}: nobody planned these ${total.items} items`
  const { completed, dead, retries, isOpenEnded = false } = plan
  const open = total.items - total.completed - total.dead
  const isEnough = isOpenEnded ? total.completed >= completed : total.completed === completed && open === 0
  // A rig that was killed has fewer engines than planned, and another rig may have come after it.
  const isExcused = total.type === 'spider.engine' && open === 0 && wasKilled(writs)
  if ((isEnough || isExcused) && total.dead === dead && total.retries === retries) return undefined
  return (
    `${total.type}: ${total.completed} completed, ${total.dead} dead, ${total.retries} retries, ${open} not ended; ` +
    `planned were ${completed}, ${dead}, ${retries} and 0`
  )
}

/**
 * Holds everything against the plan: every accepted item ended as it should, every effect happened outside, and happened once.
 * What is wrong, in words; empty: the books are right.
 */
export function problemsOf(books: Books): readonly string[] {
  const types = totals(books.items).flatMap((total) => problemOf(total, books.writs) ?? [])
  return [...types, ...problemsOfWrits(books.writs), ...problemsOfEffects(books)]
}

/**
 * A process that dies costs a writ no rig. But an engine whose process has died three times fails, lest it brings down everybody;
 * killing this program often enough at the right moments leads there, and then the plan of the writs no longer holds.
 */
function wasKilled(writs: readonly WritStand[]): boolean {
  return writs.some(({ killedRigs }) => killedRigs > 0)
}

function problemsOfWrits(writs: readonly WritStand[]): readonly string[] {
  return WRITS.flatMap(({ title, phase, rigs }) => {
    const found = writs.filter((writ) => writ.title === title)
    const [writ] = found
    if (writ === undefined || found.length > 1) return [`writ "${title}": there are ${found.length} of it`]
    const isAsPlanned = writ.phase === phase && writ.rigs === rigs
    if (isAsPlanned || (wasKilled(writs) && writ.isAtRest)) return []
    return [`writ "${title}": ${writ.phase} after ${writ.rigs} rigs; planned was ${phase} after ${rigs}`]
  })
}

interface Due extends Effect {
  /** It may not have come to it. */
  readonly isOptional?: boolean
}

function problemsOfEffects({ items, effects, board, writs }: Books): readonly string[] {
  const problems: string[] = []
  const due = dueEffects(items, writs)
  const nameOf = ({ kind, subject }: Effect): string => `${kind} of ${subject}`
  for (const plan of due) {
    const found = effects.filter((effect) => nameOf(effect) === nameOf(plan))
    const [first] = found
    if (first === undefined && plan.isOptional !== true) problems.push(`${nameOf(plan)}: it did not happen`)
    if (found.length > 1) problems.push(`${nameOf(plan)}: it happened ${found.length} times`)
    if (first !== undefined && first.amount !== plan.amount)
      problems.push(`${nameOf(plan)}: ${first.amount} instead of ${plan.amount}`)
  }
  const names = new Set(due.map(nameOf))
  for (const effect of effects) if (!names.has(nameOf(effect))) problems.push(`${nameOf(effect)}: nobody planned it`)
  for (const { customer } of ORDERS)
    if (board.get(customer) !== 'on its way') problems.push(`delivery of ${customer}: it is not on the board`)
  return problems
}

/** What must have happened outside, by what became of the items and the writs. */
function dueEffects(items: readonly BookedItem[], writs: readonly WritStand[]): readonly Due[] {
  // One that is just running may have had its effect: the schedule may go on.
  const feeds = items
    .filter(({ type }) => type === 'feed-sourdough')
    .map((item): Due => ({ kind: 'feed', subject: item.id, amount: 1, isOptional: isOpen(item) }))
  const flour = writs.flatMap(({ title, rigs, killedRigs }) =>
    Array.from({ length: rigs }, (_, i): Due => {
      return { kind: 'flour', subject: `${title}, rig ${i + 1}`, amount: FLOUR, isOptional: killedRigs > 0 }
    }),
  )
  const shelf = writs
    .filter(({ phase }) => phase === 'completed')
    .map(({ title }): Due => ({ kind: 'shelf', subject: title, amount: 1 }))
  return [...EFFECTS, ...feeds, ...flour, ...shelf]
}

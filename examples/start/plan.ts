// What is ordered today, and what must have become of it in the end. The program holds its own books against this.

export interface Order {
  readonly customer: string
  readonly street: string
  readonly lines: Readonly<Record<string, number>>
}

export const PRICES: Readonly<Record<string, number>> = { rye: 420, wheat: 380, pretzel: 90, cake: 2_450 }
export const STREETS: readonly string[] = ['Mill Lane 1', 'Weir Street 7']

export const ORDERS: readonly Order[] = [
  { customer: 'Ada', street: 'Mill Lane 1', lines: { rye: 2, pretzel: 10, cake: 1 } },
  { customer: 'Grace', street: 'Nowhere 0', lines: { wheat: 3, pretzel: 4 } },
  { customer: 'Barbara', street: 'Weir Street 7', lines: { rye: 1, wheat: 1 } },
]

/** What an order comes to, in cents. */
export function totalOf({ lines }: Order): number {
  return Object.entries(lines).reduce((cents, [bread, count]) => cents + count * (PRICES[bread] ?? 0), 0)
}

/** The card terminal answers 503 so many times before a payment goes through. */
export const BUSY_TERMINAL_ATTEMPTS = 2

/** How often the sourdough is fed while the story lasts. */
export const FEEDS = 4

/** What the guild owes. `ovenFails` says of which rigs (from 1) the oven fails. */
export interface PlannedWrit {
  readonly title: string
  readonly follows?: string
  ovenFails(rig: number): boolean
  /** Where it must stand in the end, and after how many rigs. */
  readonly phase: 'completed' | 'stuck' | 'open'
  readonly rigs: number
}

export const WRITS: readonly PlannedWrit[] = [
  { title: 'rye loaf', ovenFails: (rig) => rig === 1, phase: 'completed', rigs: 2 },
  { title: 'sandwiches', follows: 'rye loaf', ovenFails: () => false, phase: 'completed', rigs: 1 },
  // The cap of Clockworks-Retry is two rigs: after that it is for a person.
  { title: 'wedding cake', ovenFails: () => true, phase: 'stuck', rigs: 2 },
  { title: 'wedding table', follows: 'wedding cake', ovenFails: () => false, phase: 'open', rigs: 0 },
]

/** How many items of a type there must be in the end, and what became of them. */
export interface PlannedType {
  readonly type: string
  readonly completed: number
  readonly dead: number
  /** Attempts beyond the first, over all of them. */
  readonly retries: number
  /** More may come while the program stays up. */
  readonly isOpenEnded?: boolean
}

const lines = ORDERS.reduce((sum, order) => sum + Object.keys(order.lines).length, 0)
const isKnown = ({ street }: Order): boolean => STREETS.includes(street)
const rigs = WRITS.reduce((sum, writ) => sum + writ.rigs, 0)

export const TYPES: readonly PlannedType[] = [
  { type: 'bake-order', completed: ORDERS.length, dead: 0, retries: 0 },
  { type: 'bake-line', completed: lines, dead: 0, retries: 0 },
  // The gate of each fan-in: one item that waits for all lines of its order.
  { type: '@work/dependency', completed: ORDERS.length, dead: 0, retries: 0 },
  { type: 'charge', completed: ORDERS.length, dead: 0, retries: ORDERS.length * BUSY_TERMINAL_ATTEMPTS },
  {
    type: 'print-label',
    completed: ORDERS.filter(isKnown).length,
    dead: ORDERS.filter((order) => !isKnown(order)).length,
    retries: 0,
  },
  { type: 'deliver', completed: ORDERS.length, dead: 0, retries: 0 },
  { type: 'feed-sourdough', completed: FEEDS, dead: 0, retries: 0, isOpenEnded: true },
  // Two engines in each rig. One that fails has done its work: the failure is on its rig.
  { type: 'spider.engine', completed: 2 * rigs, dead: 0, retries: 0 },
]

/** Something that must have happened outside, once: what, about whom, and how much. */
export interface PlannedEffect {
  readonly kind: string
  readonly subject: string
  readonly amount: number
}

export const EFFECTS: readonly PlannedEffect[] = [
  ...ORDERS.map((order) => ({ kind: 'payment', subject: order.customer, amount: totalOf(order) })),
  ...ORDERS.filter(isKnown).map(({ customer }) => ({ kind: 'label', subject: customer, amount: 1 })),
]

/** How much flour goes into a rig. */
export const FLOUR = 500

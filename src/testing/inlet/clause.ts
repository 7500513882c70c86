import type { CapabilityName } from '../../source/subscription.js'
import type { InletBench } from './bench.js'

/** What a clause may need: a capability of the subscription, a backend that counts, or time that a test can move. */
export type InletNeed = CapabilityName | 'delivery count' | 'exact time' | 'redelivery'

/** One obligation of an inlet, and the test of it. */
export interface InletClause {
  /** The obligation in a sentence. */
  readonly law: string
  /** Where to look first when it breaks. */
  readonly look: string
  readonly needs?: readonly InletNeed[]
  run(bench: InletBench): Promise<void>
}

/** Keeps the names of the clauses as literal types. */
export const inletClausesOf = <const Name extends string>(
  clauses: Readonly<Record<Name, InletClause>>,
): Readonly<Record<Name, InletClause>> => Object.freeze(clauses)

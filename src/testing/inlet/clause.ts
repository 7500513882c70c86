import type { CapabilityName } from '../../source/inlets/subscription.js'
import { clausesOn } from '../conformance/clause.js'
import type { InletBench } from './bench.js'

/** What a clause may need: a capability of the subscription, a backend that counts, or time that a test can move. */
export type InletNeed = CapabilityName | 'delivery count' | 'exact time' | 'redelivery'

/** Keeps the names of the clauses as literal types. */
export const inletClausesOf = clausesOn<InletBench, InletNeed>()

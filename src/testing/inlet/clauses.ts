import { consumingClauses } from './consuming-clauses.js'
import { endingClauses } from './ending-clauses.js'
import { leaseClauses } from './lease-clauses.js'
import { optionalClauses } from './optional-clauses.js'
import { settlingClauses } from './settling-clauses.js'

/** The obligations of an inlet, all of them. */
export const inletClauses = Object.freeze({
  ...consumingClauses,
  ...settlingClauses,
  ...leaseClauses,
  ...endingClauses,
  ...optionalClauses,
})

/** The name of any of them. The list is closed: a waiver that names anything else does not compile, and throws. */
export type InletClauseName = keyof typeof inletClauses

import { editDistance } from '../../core/closest-name.js'
import { MillraceError } from '../../core/error.js'
import { unreachable } from '../../core/unreachable.js'
import { CAPABILITIES, type Capability, isCapability } from './capability.js'
import type { TestRunner } from './runner.js'

/** One obligation, and the test of it. */
export interface Clause<Bench> {
  /** The obligation in a sentence, with its number where the port has one. */
  readonly law: string
  /** Where to look first when it breaks. */
  readonly look: string
  readonly needs?: readonly Capability[]
  run(bench: Bench): Promise<void>
}

/** Clauses by name. The names are the literal keys, so that a waiver is checked by the compiler too. */
export type Clauses<Bench, Name extends string = string> = Readonly<Record<Name, Clause<Bench>>>

/** Keeps the names of the clauses as literal types. */
export const clausesOn =
  <Bench>() =>
  <const Name extends string>(clauses: Clauses<Bench, Name>): Clauses<Bench, Name> =>
    Object.freeze(clauses)

/** What a suite is told about the backend, beside how to open it. */
export interface Standing<Name extends string> {
  /** Clauses this backend cannot keep, each with the reason that users should read. They are skipped, visibly. */
  readonly waived?: Readonly<Partial<Record<Name, string>>>
  /** Optional capabilities it does not have. A suite checks that this is true. */
  readonly without?: readonly Capability[]
}

/** What becomes of a clause for one backend. */
export type Verdict =
  | { readonly kind: 'kept' }
  | { readonly kind: 'lacking'; readonly capability: Capability }
  | { readonly kind: 'waived'; readonly reason: string }

export function verdictOn(clause: Pick<Clause<never>, 'needs'>, name: string, standing: Standing<string>): Verdict {
  const reason = standing.waived?.[name]
  if (reason !== undefined) return { kind: 'waived', reason }
  const capability = clause.needs?.find((needed) => standing.without?.includes(needed))
  return capability === undefined ? { kind: 'kept' } : { kind: 'lacking', capability }
}

/** Registers one test for each clause; one that is not kept is a skip whose title says why. */
export function registerClauses<Bench>(
  test: TestRunner,
  backend: string,
  clauses: Clauses<Bench>,
  standing: Standing<string>,
  onBench: (use: (bench: Bench) => Promise<void>) => Promise<void>,
): void {
  for (const [name, clause] of Object.entries<Clause<Bench>>(clauses)) {
    const body = () => onBench((bench) => keep(backend, name, clause, bench))
    const verdict = verdictOn(clause, name, standing)
    switch (verdict.kind) {
      case 'kept':
        test.it(name, body)
        break
      case 'lacking':
        test.it.skip(`${name} (without ${verdict.capability})`, body)
        break
      case 'waived':
        test.it.skip(`${name} (waived: ${verdict.reason})`, body)
        break
      default:
        unreachable(verdict)
    }
  }
}

/** Rejects a waiver or a capability that does not exist: a misspelt one would silently waive nothing. */
export function checkStanding(suite: string, standing: Standing<string>, names: readonly string[]): void {
  for (const [name, reason] of Object.entries(standing.waived ?? {})) {
    if (!names.includes(name))
      throw new MillraceError(
        'UNKNOWN_CLAUSE',
        `waived: "${name}" is not a clause of ${suite}(). Closest: "${closest(name, names)}". conformanceClauses() lists all.`,
      )
    if (typeof reason !== 'string' || reason.trim() === '')
      throw new MillraceError('UNKNOWN_CLAUSE', `waived: "${name}" needs a reason that users can read.`)
  }
  for (const word of standing.without ?? [])
    if (!isCapability(word))
      throw new MillraceError(
        'UNKNOWN_CAPABILITY',
        `without: "${String(word)}" is not a capability. Closest: "${closest(String(word), Object.keys(CAPABILITIES))}".`,
      )
}

/** A clause that does not hold. The message says which obligation broke, what was found, and what to look at. */
export class ConformanceError extends MillraceError {
  readonly clause: string
  constructor(backend: string, name: string, clause: Clause<never>, cause: unknown) {
    const found = cause instanceof Error ? cause.message : String(cause)
    super(
      'CLAUSE_BROKEN',
      `${backend} does not keep the clause "${name}".\n` +
        `  Obligation: ${clause.law}\n  Found:      ${found.replaceAll('\n', '\n              ')}\n  Look at:    ${clause.look}`,
      { cause, facts: { backend, clause: name } },
    )
    this.clause = name
  }
}

async function keep<Bench>(backend: string, name: string, clause: Clause<Bench>, bench: Bench): Promise<void> {
  try {
    await clause.run(bench)
  } catch (cause) {
    throw new ConformanceError(backend, name, clause as Clause<never>, cause)
  }
}

/** The known word that takes the fewest slips to reach: somebody who names a clause meant one. */
function closest(word: string, known: readonly string[]): string {
  const slips = (name: string) => editDistance(word.toLowerCase(), name.toLowerCase())
  return known.reduce((best, name) => (slips(name) < slips(best) ? name : best), known[0] ?? '')
}

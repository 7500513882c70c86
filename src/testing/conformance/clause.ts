import { MillraceError } from '../../core/error.js'
import { editDistance } from '../../core/text/closest-name.js'
import { CAPABILITIES, type Capability, isCapability } from './capability.js'
import type { TestRunner } from './runner.js'

/** One obligation, and the test of it. */
export interface ConformanceClause<Bench, Need extends string = Capability> {
  /** The obligation in a sentence, with its number where the port has one. */
  readonly law: string
  /** Where to search first when it breaks. */
  readonly hint: string
  readonly needs?: readonly Need[]
  run(bench: Bench): Promise<void>
}

/** Clauses by name. The names are literal keys, so the compiler checks waivers too. */
export type Clauses<Bench, Name extends string = string, Need extends string = Capability> = Readonly<
  Record<Name, ConformanceClause<Bench, Need>>
>

/** Keeps the names of the clauses as literal types. */
export const clausesOn =
  <Bench, Need extends string = Capability>() =>
  <const Name extends string>(clauses: Clauses<Bench, Name, Need>): Clauses<Bench, Name, Need> =>
    Object.freeze(clauses)

/** What a suite knows about the backend, beside how to open it. */
export interface Standing<Name extends string, Need extends string = Capability> {
  /** Clauses this backend cannot keep, each with the reason that users should read. They are skipped, visibly. */
  readonly waived?: Readonly<Partial<Record<Name, string>>>
  /** Optional capabilities it does not have. A suite checks that this is true. */
  readonly without?: readonly Need[]
}

/** Why a clause is skipped for this backend; undefined where it is kept. */
function whySkipped(
  { needs }: Pick<ConformanceClause<never, string>, 'needs'>,
  name: string,
  standing: Standing<string, string>,
) {
  const reason = standing.waived?.[name]
  if (reason !== undefined) return `waived: ${reason}`
  const lacking = needs?.find((needed) => standing.without?.includes(needed))
  return lacking === undefined ? undefined : `without ${lacking}`
}

/** Registers one test for each clause; a clause that does not apply is a skip whose title says why. */
export function registerClauses<Bench>(
  test: TestRunner,
  backend: string,
  clauses: Clauses<Bench, string, string>,
  standing: Standing<string, string>,
  onBench: (use: (bench: Bench) => Promise<void>) => Promise<void>,
): void {
  for (const [name, clause] of Object.entries<ConformanceClause<Bench, string>>(clauses)) {
    const body = () => onBench((bench) => keep(backend, name, clause, bench))
    const why = whySkipped(clause, name, standing)
    if (why === undefined) test.it(name, body)
    else test.it.skip(`${name} (${why})`, body)
  }
}

/** Rejects a waiver that names no clause: a misspelt one would silently waive nothing. */
export function checkWaivers(suite: string, waived: Standing<string>['waived'], names: readonly string[]): void {
  for (const [name, reason] of Object.entries(waived ?? {})) {
    if (!names.includes(name))
      throw new MillraceError(
        'UNKNOWN_CLAUSE',
        `waived: "${name}" is not a clause of ${suite}(). Closest: "${closest(name, names)}".`,
      )
    if (typeof reason !== 'string' || reason.trim() === '')
      throw new MillraceError('UNKNOWN_CLAUSE', `waived: "${name}" needs a reason that users can read.`)
  }
}

/** Rejects a waiver or a capability that does not exist. */
export function checkStanding(suite: string, standing: Standing<string>, names: readonly string[]): void {
  checkWaivers(suite, standing.waived, names)
  for (const word of standing.without ?? [])
    if (!isCapability(word))
      throw new MillraceError(
        'UNKNOWN_CAPABILITY',
        `without: "${String(word)}" is not a capability. Closest: "${closest(String(word), Object.keys(CAPABILITIES))}".`,
      )
}

/** A clause that does not hold. The message says which obligation broke, what was found, and a hint. */
export class ConformanceError extends MillraceError {
  readonly clause: string
  constructor(backend: string, name: string, clause: Pick<ConformanceClause<never>, 'law' | 'hint'>, cause: unknown) {
    const found = cause instanceof Error ? cause.message : String(cause)
    super(
      'CLAUSE_BROKEN',
      `${backend} does not keep the clause "${name}".\n` +
        `  Obligation: ${clause.law}\n  Found:      ${found.replaceAll('\n', '\n              ')}\n  Hint:       ${clause.hint}`,
      { cause, facts: { backend, clause: name } },
    )
    this.clause = name
  }
}

async function keep<Bench>(
  backend: string,
  name: string,
  clause: ConformanceClause<Bench, string>,
  bench: Bench,
): Promise<void> {
  try {
    await clause.run(bench)
  } catch (cause) {
    throw new ConformanceError(backend, name, clause, cause)
  }
}

/** The known word with the smallest edit distance: a misspelt name meant some clause. */
function closest(word: string, known: readonly string[]): string {
  const slips = (name: string) => editDistance(word.toLowerCase(), name.toLowerCase())
  return known.reduce((best, name) => (slips(name) < slips(best) ? name : best), known[0] ?? '')
}

import { CANARY_SIZES } from '../ops/acts/action-record.js'
import type { ActionReport, ActOptions, Target, Verb, Watching } from '../ops/api.js'
import type { Call } from './command.js'
import { EXIT, type ExitCode } from './exit.js'
import { FILTER_FLAGS, isFilterWord, readFilters, targetText } from './input/filters.js'
import type { Flags, Values } from './input/flags.js'
import { notesOf } from './screen.js'
import { counted, countText } from './terminal/bar.js'
import { clean } from './terminal/clean.js'
import { Progress } from './terminal/progress.js'
import { UsageError } from './usage-error.js'
import { unheardOf } from './views/unheard-of.js'

/** Who acts, and why. Both go into the log. */
export const BY_FLAGS = {
  who: { kind: 'text', value: '<name>', about: 'who acts, for the log; default: you, on this machine' },
  why: { kind: 'text', value: '<text>', about: 'why, for the log' },
} as const satisfies Flags

export const BULK_FLAGS = {
  all: { kind: 'switch', about: 'all that this can be done to' },
  ...FILTER_FLAGS,
  'dry-run': { kind: 'switch', about: 'only say how many it would be' },
  yes: { kind: 'switch', short: 'y', about: 'do not ask' },
  ...BY_FLAGS,
} as const satisfies Flags

type BulkCall = Call<typeof BULK_FLAGS>

export function byOf({ io, flags }: { io: Call['io']; flags: Values<typeof BY_FLAGS> }): { who: string; why?: string } {
  return { who: flags.who ?? io.user, ...(flags.why === undefined ? {} : { why: flags.why }) }
}

/** One id, a search, or everything: what the person said, and nothing that they did not. */
export function targetOf({ io, flags, operands }: BulkCall, verb: string): Target {
  const ids = operands.filter((word) => !isFilterWord(word))
  const query = readFilters(
    flags,
    operands.filter((word) => isFilterWord(word)),
    io.clock.now(),
  )
  const hasQuery = Object.keys(query).length > 0
  const [id, ...others] = ids
  if (others.length > 0) throw new UsageError(`One id at a time, or a search: "${others[0]}" is too much.`, verb)
  if (id !== undefined) {
    if (hasQuery || flags.all) throw new UsageError('Either an id, or a search, or --all.', verb)
    return id
  }
  if (hasQuery && flags.all) throw new UsageError('Either a search, or --all: all is more than the search.', verb)
  if (!hasQuery && !flags.all)
    throw new UsageError('Which items? Give an id, a search such as type:charge, or --all.', verb)
  return query
}

/** What a bulk command does: names its target, counts, asks, acts while somebody watches, and says what became of it. */
export interface Bulk {
  readonly verb: Verb
  /** The name of the command. */
  readonly name: string
  readonly past: string
  /** One first, then ten: the end of each is waited for. */
  readonly isCanary?: boolean
  /** Asks even for a single item, because it cannot be taken back. */
  readonly isFinal?: boolean
  act(target: Target, options: ActOptions): Promise<ActionReport>
}

export async function runBulk(call: BulkCall, target: Target, bulk: Bulk): Promise<ExitCode> {
  const { io, screen, flags, isJson } = call
  const by = byOf(call)
  const asks = !flags.yes && (typeof target !== 'string' || bulk.isFinal === true)
  if (flags['dry-run'] || asks) {
    const { total } = await bulk.act(target, { ...by, dryRun: true })
    if (flags['dry-run']) {
      if (isJson) screen.json({ verb: bulk.verb, target, total, dryRun: true })
      else screen.line(`${bulk.name} would take ${counted(total, 'item')} (${clean(targetText(target))}).`)
      return EXIT.done
    }
    if (total === 0 && typeof target !== 'string') return nothing(call, bulk, target)
    if (io.ask === undefined)
      throw new UsageError(
        `${bulk.name} would take ${counted(total, 'item')}. Nobody is there to be asked: say --yes, or --dry-run to only count.`,
        bulk.name,
      )
    const answer = await io.ask(`${bulk.name} ${counted(total, 'item')}? [y/N] `)
    if (!/^\s*y(es)?\s*$/i.test(answer ?? '')) {
      // An interrupt leaves the cursor behind the question.
      screen.note(answer === undefined ? '\nNothing was done.' : 'Nothing was done.')
      return EXIT.negative
    }
  }
  const report = await watched(call, bulk.name, (watch) =>
    bulk.act(target, { ...by, ...watching(watch, bulk.isCanary) }),
  )
  return tellOutcome(call, bulk.past, report)
}

async function nothing(call: BulkCall, { verb, name }: Bulk, target: Exclude<Target, string>): Promise<ExitCode> {
  const { screen, isJson } = call
  const hint = await unheardOf(await call.ops(), target)
  if (hint !== undefined) screen.note(hint)
  if (isJson) screen.json({ verb, target, total: 0, done: 0, passed: 0, state: 'done' })
  else screen.line(`There is nothing to ${name} (${clean(targetText(target))}).`)
  return EXIT.done
}

/** What somebody watches who runs a command over many items. */
export interface Watch {
  readonly progress: Progress
  /** An interrupt stops it after the page under way. */
  readonly signal: AbortSignal
}

/** Shows the progress of something long. An interrupt stops it after the page under way; a second one ends the process. */
export async function watched<T>(
  { io, mayColour }: Pick<Call, 'io' | 'mayColour'>,
  label: string,
  act: (watch: Watch) => Promise<T>,
): Promise<T> {
  const progress = new Progress(io.err, io.clock, label, notesOf(io, mayColour).paint)
  const stop = new AbortController()
  const release = io.onInterrupt(() => {
    if (stop.signal.aborted) io.exit(EXIT.interrupted)
    progress.end()
    io.err.write('Stopping after this page. Once more to leave at once.\n')
    stop.abort()
  })
  try {
    return await act({ progress, signal: stop.signal })
  } finally {
    release()
    progress.end()
  }
}

/** How many a canary sends ahead before the rest. */
const SENT_AHEAD = CANARY_SIZES.reduce((sum, size) => sum + size, 0)

/** How an action tells those who watch. */
export function watching({ progress, signal }: Watch, isCanary = false): Watching {
  return {
    onProgress: ({ done, passed, total }) =>
      progress.show(done + passed, total, isCanary && done <= SENT_AHEAD ? 'those sent ahead to end' : undefined),
    signal,
  }
}

/** Says what became of an action. */
export function tellOutcome(
  { screen, isJson, typed }: Pick<Call, 'screen' | 'isJson' | 'typed'>,
  past: string,
  report: ActionReport,
): ExitCode {
  const { id, total, done, passed, state, because } = report
  if (isJson) screen.json(report)
  else {
    const moved = passed === 0 ? '' : `; ${countText(passed)} had moved on by themselves`
    const of = done + passed >= total ? counted(done, 'item') : `${countText(done)} of ${counted(total, 'item')}`
    screen.line(`${past} ${of}${moved}.`)
    if (state !== 'done') {
      screen.line(`It stopped before its end${because === undefined ? '' : `: ${clean(because)}`}.`)
      screen.line(`Go on with: ${typed(['proceed', id])}`)
    }
  }
  return state === 'done' ? EXIT.done : EXIT.negative
}

import { CANARY_SIZES } from '../ops/actions/action-record.js'
import type { ActionOptions, ActionReport, BulkVerb, ItemSelector, Ops, Watching } from '../ops/api.js'
import { type Call, type Command, defineCommand } from './command.js'
import { EXIT, type ExitCode } from './exit.js'
import { itemIdOf } from './find-id.js'
import { FILTER_FLAGS, isFilterWord, readFilters, selectorText } from './input/filters.js'
import type { Flags, Values } from './input/flags.js'
import { notesOf } from './screen.js'
import { counted, countText } from './terminal/bar.js'
import { clean } from './terminal/clean.js'
import { Progress } from './terminal/progress.js'
import { UsageError } from './usage-error.js'
import { mistypedName } from './views/unheard-of.js'

/** Who acts, and why. Both go into the log. */
export const ACTOR_FLAGS = {
  who: { kind: 'text', value: '<name>', about: 'your name, for the log; default: your user name and this machine' },
  why: { kind: 'text', value: '<text>', about: 'your reason, for the log' },
} as const satisfies Flags

export const BULK_FLAGS = {
  all: { kind: 'switch', about: 'every item that the command applies to' },
  ...FILTER_FLAGS,
  'dry-run': { kind: 'switch', about: 'only count the items; change nothing' },
  yes: { kind: 'switch', short: 'y', about: 'do not ask for confirmation' },
  ...ACTOR_FLAGS,
} as const satisfies Flags

type BulkCall = Call<typeof BULK_FLAGS>

export function actorOf({ io, flags }: { io: Call['io']; flags: Values<typeof ACTOR_FLAGS> }): {
  who: string
  why?: string
} {
  return { who: flags.who ?? io.user, ...(flags.why === undefined ? {} : { why: flags.why }) }
}

/** One id, a search, or everything, exactly as typed. */
export function selectorOf({ io, flags, operands }: BulkCall, verb: string): ItemSelector {
  const ids = operands.filter((word) => !isFilterWord(word))
  const query = readFilters(
    flags,
    operands.filter((word) => isFilterWord(word)),
    io.clock.now(),
  )
  const hasQuery = Object.keys(query).length > 0
  const [id, ...others] = ids
  if (others.length > 0) throw new UsageError(`Give one id or a search: "${others[0]}" is one id too many.`, verb)
  if (id !== undefined) {
    if (hasQuery || flags.all) throw new UsageError('Give either an id, a search, or --all.', verb)
    return id
  }
  if (hasQuery && flags.all) throw new UsageError('Give either a search or --all, not both.', verb)
  if (!hasQuery && !flags.all)
    throw new UsageError('Which items? Give an id, a search such as type:charge, or --all.', verb)
  return query
}

/** A bulk command: it counts its items, asks, runs with a progress bar, and prints the result. */
export interface Bulk {
  readonly verb: BulkVerb
  /** The name of the command. */
  readonly name: string
  readonly past: string
  /** Sends one item first, then ten, and waits for each to end. */
  readonly isCanary?: boolean
  /** Asks even for a single item, because it cannot be undone. */
  readonly isFinal?: boolean
  act(target: ItemSelector, options: ActionOptions): Promise<ActionReport>
}

export async function runBulk(call: BulkCall, given: ItemSelector, bulk: Bulk): Promise<ExitCode> {
  const { screen, flags, isJson } = call
  const by = actorOf(call)
  const target = typeof given === 'string' ? await itemIdOf(call, await call.ops(), given) : given
  // Who typed only the beginning of an id has not seen yet which item it is.
  const asks = !flags.yes && (typeof target !== 'string' || target !== given || bulk.isFinal === true)
  const what = (total: number) => (typeof target === 'string' ? clean(target) : counted(total, 'item'))
  if (flags['dry-run'] || asks) {
    const { total } = await bulk.act(target, { ...by, dryRun: true })
    if (flags['dry-run']) {
      if (isJson) screen.json({ verb: bulk.verb, target, total, dryRun: true })
      else screen.line(`${bulk.name} would change ${counted(total, 'item')} (${clean(selectorText(target))}).`)
      return EXIT.done
    }
    if (total === 0 && typeof target !== 'string') return nothing(call, bulk, target)
    if (!(await isConfirmed(call, bulk.name, `${bulk.name} ${what(total)}`, COUNT_INSTEAD))) return EXIT.negative
  }
  const report = await watched(call, bulk.name, (watch) =>
    bulk.act(target, { ...by, ...watching(watch, bulk.isCanary) }),
  )
  return printOutcome(call, bulk.past, report)
}

/** What a command that can count is told to do without a terminal, too. */
export const COUNT_INSTEAD = ', or --dry-run to only count'

/** Asks before something is changed. `instead`: what else than --yes to add where there is no terminal. */
export async function isConfirmed(
  { io, screen }: Pick<Call, 'io' | 'screen'>,
  command: string,
  what: string,
  instead = '',
): Promise<boolean> {
  if (io.ask === undefined)
    throw new UsageError(`Would ${what}. It cannot ask without a terminal: add --yes${instead}.`, command)
  const answer = await io.ask(`${what}? [y/N] `)
  if (/^\s*y(es)?\s*$/i.test(answer ?? '')) return true
  // An interrupt leaves the cursor after the question.
  screen.note(answer === undefined ? '\nNothing was changed.' : 'Nothing was changed.')
  return false
}

async function nothing(call: BulkCall, { verb, name }: Bulk, target: Exclude<ItemSelector, string>): Promise<ExitCode> {
  const { screen, isJson } = call
  const hint = await mistypedName(await call.ops(), target)
  if (hint !== undefined) screen.note(hint)
  if (isJson) screen.json({ verb, target, total: 0, done: 0, passed: 0, state: 'done' })
  else screen.line(`There is nothing to ${name} (${clean(selectorText(target))}).`)
  return EXIT.done
}

/** Progress bar and stop signal of a command over many items. */
export interface Watch {
  readonly progress: Progress
  /** An interrupt stops it after the current page. */
  readonly signal: AbortSignal
}

/** Shows the progress of a long action. An interrupt stops it after the current page; a second one ends the process. */
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
    io.err.write('Stopping after this page. Press again to stop immediately.\n')
    stop.abort()
  })
  try {
    return await act({ progress, signal: stop.signal })
  } finally {
    release()
    progress.end()
  }
}

/** How many items a canary sends ahead of the rest. */
const SENT_AHEAD = CANARY_SIZES.reduce((sum, size) => sum + size, 0)

/** The callbacks of an action that drive the progress bar. */
export function watching({ progress, signal }: Watch, isCanary = false): Watching {
  return {
    onProgress: ({ done, passed, total }) =>
      progress.show(done + passed, total, isCanary && done <= SENT_AHEAD ? 'the items sent ahead' : undefined),
    signal,
  }
}

/** Prints the result of an action. */
export function printOutcome(
  { screen, isJson, typed }: Pick<Call, 'screen' | 'isJson' | 'typed'>,
  past: string,
  report: ActionReport,
): ExitCode {
  const { id, total, done, passed, state, because } = report
  if (isJson) screen.json(report)
  else {
    const moved = passed === 0 ? '' : `; ${countText(passed)} had already moved on`
    const of = done + passed >= total ? counted(done, 'item') : `${countText(done)} of ${counted(total, 'item')}`
    screen.line(`${past} ${of}${moved}.`)
    if (state !== 'done') {
      screen.line(`It stopped early${because === undefined ? '' : `: ${clean(because)}`}.`)
      screen.line(`Continue with: ${typed(['continue', id])}`)
    }
  }
  return state === 'done' ? EXIT.done : EXIT.negative
}

/** A command that applies one action to an item, to a search, or to everything. */
export interface BulkCommand {
  readonly name: string
  readonly verb: Exclude<BulkVerb, 'redrive'>
  readonly past: string
  readonly summary: string
  readonly examples: readonly (readonly [line: string, about: string])[]
  /** It cannot be undone, so it asks even for a single item. */
  readonly isFinal?: boolean
}

export function defineBulk({ name, verb, past, summary, examples, isFinal = false }: BulkCommand): Command {
  const asks = isFinal
    ? 'It cannot be undone, so it asks even for a single item'
    : 'Before it changes more than one item, it shows how many and asks'
  return defineCommand({
    name,
    summary,
    operands: '[<id> | filter …]',
    atMost: 20,
    about: [`Applies to one item, a search, or --all. ${asks}; without a terminal it needs --yes.`],
    flags: BULK_FLAGS,
    examples,
    async run(call) {
      const target = selectorOf(call, name)
      const ops: Ops = await call.ops()
      return runBulk(call, target, { verb, name, past, isFinal, act: (what, options) => ops[verb](what, options) })
    },
  })
}

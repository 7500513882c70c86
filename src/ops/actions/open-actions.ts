import { newId } from '../../core/ids.js'
import { integerOption, optionsObject, stringOption } from '../../core/options.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { Inspect } from '../../ports/inspect.js'
import type { ActionReport, BulkVerb, ContinueOptions, ItemSelector, Ops, RedriveOptions } from '../api.js'
import type { OpsContext } from '../context.js'
import type { GuildStacks } from '../guild/books.js'
import { mergedLog, readGuildLog } from '../guild/guild-log.js'
import { type ActionRecord, CANARY_SIZES, queryOf, reportOf } from './action-record.js'
import { ActionStore } from './action-store.js'
import { ActionRun, logged } from './bulk-action.js'
import { retentionOf } from './change.js'
import { NoActionError } from './errors.js'
import { pauseOrResume } from './pause.js'
import { type ReadOptions, readActionOptions, readSelector, readWatching, type Selection } from './selection.js'
import { runSingleAction } from './single-action.js'

export type Actions = Pick<
  Ops,
  'redrive' | 'discard' | 'cancel' | 'runNow' | 'pause' | 'resume' | 'actions' | 'continue' | 'log'
>

const LOG_LINES = 100

/** What people can do to the items of a backend: one at a time, or to all that match. */
export function openActions(context: OpsContext, stacks?: GuildStacks): Actions {
  const { ledger } = context
  const store = new ActionStore(context)
  const keepOf = async () => retentionOf((await ledger.inspect?.workers()) ?? [])

  async function runAction(verb: BulkVerb, target: ItemSelector, options: RedriveOptions): Promise<ActionReport> {
    const asked = readSelector(verb, target)
    const how = readActionOptions(verb, options)
    if (asked.kind === 'one') {
      return runSingleAction(context, verb, asked.id, { ...how, actionId: newId(), keep: await keepOf() })
    }
    const record = await newAction(context, verb, target, asked, how)
    if (how.isDryRun) return { ...reportOf(record), state: 'done' }
    await store.begin(record)
    await ledger.commit([logged(record, `began: ${record.total} match`)])
    return new ActionRun({ ...how, context, store, keep: await keepOf(), isResumed: false }, record).run()
  }

  return {
    redrive: (what, by) => awake(runAction('redrive', what, by)),
    discard: (what, by) => awake(runAction('discard', what, by)),
    cancel: (what, by) => awake(runAction('cancel', what, by)),
    runNow: (what, by) => awake(runAction('runNow', what, by)),
    pause: (what, by) => pauseOrResume(context, 'pause', what, by),
    resume: (what, by) => pauseOrResume(context, 'resume', what, by),
    actions: async () => (await store.recent()).map((record) => reportOf(record)),
    async log(limit) {
      const most = integerOption('log(limit)', limit, { min: 1, max: 1_000, default: LOG_LINES })
      const ofItems = context.inspect('log').log(most)
      if (stacks === undefined) return ofItems
      const ofWrits = readGuildLog(stacks, most)
      return mergedLog(await ofItems, await ofWrits, most)
    },
    async continue(actionId, options) {
      const given = optionsObject<ContinueOptions>('continue', options, ['who', 'why', 'onProgress', 'signal'])
      const watching = readWatching('continue', given)
      const id = stringOption('continue(actionId)', actionId)
      const found = await store.load(id)
      if (found === undefined) throw new NoActionError(id)
      if (found.state === 'done') return reportOf(found)
      const { because: _, ...rest } = found
      const record: ActionRecord = { ...rest, state: 'running', runner: newId() }
      const who = stringOption('continue.who', given.who, record.who)
      const why = given.why ?? record.why
      await store.save(record)
      await ledger.commit([logged({ ...record, who, why }, `goes on after ${record.done} of ${record.total}`)])
      const services = { ...watching, context, store, keep: await keepOf(), isResumed: true }
      return awake(new ActionRun(services, record).run())
    },
  }
}

/** Keeps the process alive until the action has finished: our timers do not. */
async function awake<T>(work: Promise<T>): Promise<T> {
  const letGo = keepAlive()
  try {
    return await work
  } finally {
    letGo()
  }
}

async function newAction(
  context: OpsContext,
  verb: BulkVerb,
  target: ItemSelector,
  asked: Extract<Selection, { readonly kind: 'all' }>,
  { who, why, pageSize, canaryWaitMs }: ReadOptions,
): Promise<ActionRecord> {
  const inspect = context.inspect(verb)
  const record: ActionRecord = {
    id: newId(),
    verb,
    target,
    who,
    why,
    startedAt: await context.now(),
    total: 0,
    done: 0,
    passed: 0,
    state: 'running',
    query: asked.query,
    states: asked.states,
    pageSize,
    at: { state: 0, found: 0 },
    runner: newId(),
    isEnding: false,
    ...(canaryWaitMs === undefined
      ? {}
      : { canary: { waitMs: canaryWaitMs, sizes: CANARY_SIZES, ahead: [], marks: [] } }),
  }
  return { ...record, total: await countOf(inspect, record) }
}

async function countOf(inspect: Inspect, record: ActionRecord): Promise<number> {
  const query = queryOf(record)
  const counts = await Promise.all(record.states.map((state) => inspect.count({ ...query, state })))
  return counts.reduce((sum, count) => sum + count, 0)
}

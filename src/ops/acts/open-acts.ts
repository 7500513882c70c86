import { newId } from '../../core/ids.js'
import { keepAlive } from '../../core/keep-alive.js'
import { integerOption, optionsObject, stringOption } from '../../core/options.js'
import type { Inspect } from '../../ports/ledger.js'
import { pauseOrResume, readPausable } from '../../work/controls/pausing.js'
import type { ActionReport, By, Ops, PauseTarget, ProceedOptions, RedriveOptions, Target, Verb } from '../api.js'
import type { Desk } from '../desk.js'
import { ActionBook } from './action-book.js'
import { type ActionRecord, CANARY_SIZES, queryOf, reportOf } from './action-record.js'
import { type Asked, type HowAsked, readBy, readHow, readTarget, readWatching } from './asked.js'
import { ActionRun, isApplied, logged } from './carry-out.js'
import { retentionOf } from './change.js'
import { NoActionError } from './errors.js'
import { actOnOne } from './one.js'

export type Acts = Pick<
  Ops,
  'redrive' | 'discard' | 'cancel' | 'runNow' | 'pause' | 'resume' | 'actions' | 'proceed' | 'log'
>

const LOG_LINES = 100

/** What people can do to the items of a backend: one by one, or to all that match. */
export function openActs(desk: Desk): Acts {
  const { ledger } = desk
  const book = new ActionBook(desk)
  const keepOf = async () => retentionOf((await ledger.inspect?.workers()) ?? [])

  async function acted(verb: Verb, target: Target, options: RedriveOptions): Promise<ActionReport> {
    const asked = readTarget(verb, target)
    const how = readHow(verb, options)
    if (asked.kind === 'one') {
      return actOnOne(desk, verb, asked.id, { ...how, actionId: newId(), keep: await keepOf() })
    }
    const record = await newAction(desk, verb, target, asked, how)
    if (how.isDryRun) return { ...reportOf(record), state: 'done' }
    await book.begin(record)
    await ledger.commit([logged(record, `began: ${record.total} match`)])
    return new ActionRun({ ...how, desk, book, keep: await keepOf(), isResumed: false }, record).toItsEnd()
  }

  async function order(verb: 'pause' | 'resume', what: PauseTarget, by: By): Promise<void> {
    const named = readPausable(verb, what, () => undefined)
    const { who, why } = readBy(verb, by)
    const [result] = await ledger.commit([pauseOrResume(verb, named, who, why)])
    if (result !== undefined) isApplied(result)
  }

  return {
    redrive: (what, by) => awake(acted('redrive', what, by)),
    discard: (what, by) => awake(acted('discard', what, by)),
    cancel: (what, by) => awake(acted('cancel', what, by)),
    runNow: (what, by) => awake(acted('runNow', what, by)),
    pause: (what, by) => order('pause', what, by),
    resume: (what, by) => order('resume', what, by),
    actions: async () => (await book.recent()).map((record) => reportOf(record)),
    log: async (limit) =>
      desk.inspect('log').log(integerOption('log(limit)', limit, { min: 1, max: 1_000, default: LOG_LINES })),
    async proceed(actionId, options) {
      const given = optionsObject<ProceedOptions>('proceed', options, ['who', 'why', 'onProgress', 'signal'])
      const watching = readWatching('proceed', given)
      const id = stringOption('proceed(actionId)', actionId)
      const found = await book.load(id)
      if (found === undefined) throw new NoActionError(id)
      if (found.state === 'done') return reportOf(found)
      const { because: _, ...rest } = found
      const record: ActionRecord = { ...rest, state: 'running', runner: newId() }
      const who = stringOption('proceed.who', given.who, record.who)
      const why = given.why ?? record.why
      await book.save(record)
      await ledger.commit([logged({ ...record, who, why }, `goes on after ${record.done} of ${record.total}`)])
      const services = { ...watching, desk, book, keep: await keepOf(), isResumed: true }
      return awake(new ActionRun(services, record).toItsEnd())
    },
  }
}

/** Our timers hold no program open; one that has begun an action is to see it through. */
async function awake<T>(work: Promise<T>): Promise<T> {
  const letGo = keepAlive()
  try {
    return await work
  } finally {
    letGo()
  }
}

async function newAction(
  desk: Desk,
  verb: Verb,
  target: Target,
  asked: Extract<Asked, { readonly kind: 'all' }>,
  { who, why, pageSize, canaryWaitMs }: HowAsked,
): Promise<ActionRecord> {
  const inspect = desk.inspect(verb)
  const record: ActionRecord = {
    id: newId(),
    verb,
    target,
    who,
    why,
    startedAt: await desk.now(),
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

import { newId } from '../../core/ids.js'
import { OptionTypeError, optionsObject, stringOption } from '../../core/options.js'
import { keepAlive } from '../../core/time/keep-alive.js'
import type { At } from '../../core/time/time.js'
import type { DeadLetter, DeadLetterSink } from '../../ports/ports.js'
import { isApplied } from '../actions/bulk-action.js'
import { retryCall } from '../actions/retry-call.js'
import { readActionOptions } from '../actions/selection.js'
import type { OpsContext } from '../context.js'
import type { LetterActionOptions, LetterActionReport, LetterFilter, LetterOps, LetterSelector } from './api.js'
import { doesMatch, findLetter, LETTER_FILTER_NAMES, readLetterFilter, sinkOf } from './read-letters.js'

type Verb = LetterActionReport['verb']

const STOPPED = 'it was asked to stop; repeat it to go on'

/** What people can do with dead letters. */
export function openLetterActions(context: OpsContext): Pick<LetterOps, 'redriveLetters' | 'discardLetters'> {
  const act = async (verb: Verb, what: LetterSelector, by: LetterActionOptions): Promise<LetterActionReport> => {
    const letGo = keepAlive()
    try {
      return await actOnLetters(context, verb, what, by)
    } finally {
      letGo()
    }
  }
  return {
    redriveLetters: (what, by) => act('redrive', what, by),
    discardLetters: (what, by) => act('discard', what, by),
  }
}

/**
 * Page by page, each in one atomic step of the backend: a crash moves no letter twice. A letter that dies again while the action
 * runs is younger than the action, and is left alone.
 */
async function actOnLetters(
  context: OpsContext,
  verb: Verb,
  what: LetterSelector,
  by: LetterActionOptions,
): Promise<LetterActionReport> {
  const owner = `${verb}Letters`
  const { id, filter } = readSelector(owner, what)
  const { onProgress, ...rest } = by
  const { who, why, isDryRun, pageSize, signal } = readActionOptions(verb, rest)
  const sink = sinkOf(context, filter.queue, owner)
  const startedAt = await context.now()
  const pages = () => (id === undefined ? pagesOf(sink, filter, startedAt, pageSize) : pageOf(sink, id))
  let report: LetterActionReport = {
    ...{ id: newId(), verb, queue: filter.queue, who, why, startedAt },
    ...{ total: 0, done: 0, passed: 0, state: 'running' },
  }
  for await (const page of pages()) report = { ...report, total: report.total + page.length }
  if (isDryRun) return { ...report, state: 'done' }
  const log = (line: string) => logLine(context, report, `${targetText(id, filter)} ${line}`)
  await log(`began: ${report.total} match`)
  for await (const page of pages()) {
    if (signal?.aborted === true) {
      await log(`stopped after ${report.done} of ${report.total}: ${STOPPED}`)
      return { ...report, state: 'stopped', because: STOPPED }
    }
    const done = await retryCall(context.clock, async () => sink[verb](page), isRefusal)
    report = { ...report, done: report.done + done, passed: report.passed + page.length - done }
    onProgress?.(report)
  }
  report = { ...report, state: 'done' }
  await log(`done: ${report.done} changed, ${report.passed} had gone`)
  return report
}

function readSelector(owner: string, what: LetterSelector) {
  if (typeof what !== 'object' || what === null)
    throw new OptionTypeError(`${owner}(what)`, '{ id } or a query ({} for all of the queue)', what)
  const given = optionsObject<LetterFilter & { readonly id?: string }>(owner, what, [...LETTER_FILTER_NAMES, 'id'])
  const filter = readLetterFilter(owner, given)
  return { id: given.id === undefined ? undefined : stringOption(`${owner}.id`, given.id), filter }
}

async function* pagesOf(
  sink: DeadLetterSink,
  filter: LetterFilter,
  startedAt: At,
  size: number,
): AsyncIterableIterator<readonly DeadLetter[]> {
  for (let after: string | undefined; ; ) {
    const page = await sink.list({ ...(after === undefined ? {} : { after }), limit: size })
    const matching = page.filter((letter) => letter.at <= startedAt && doesMatch(filter, letter))
    if (matching.length > 0) yield matching
    if (page.length < size) return
    after = page.at(-1)?.cursor
  }
}

async function* pageOf(sink: DeadLetterSink, id: string): AsyncIterableIterator<readonly DeadLetter[]> {
  const letter = await findLetter(sink, id)
  if (letter !== undefined) yield [letter]
}

/** No repetition can succeed. */
function isRefusal(error: unknown): boolean {
  return (error as { readonly code?: unknown } | undefined)?.code === 'NOT_AN_ENVELOPE'
}

function targetText(id: string | undefined, { queue, ...filter }: LetterFilter): string {
  if (id !== undefined) return `${id} on queue ${queue}`
  const words = Object.entries(filter).map(([name, value]) => `${name}:${value}`)
  return [`queue:${queue}`, ...words].join(' ')
}

async function logLine(context: OpsContext, { id, verb, who, why }: LetterActionReport, line: string): Promise<void> {
  const what = `${verb} of dead letters ${line} (action ${id})`
  const [result] = await context.ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'log', who, why, what }] }])
  if (result !== undefined) isApplied(result)
}

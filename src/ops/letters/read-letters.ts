import { classLabel, FAILURE_CLASSES } from '../../core/failure/failure.js'
import { integerOption, OptionTypeError, oneOfOption, optionsObject, stringOption } from '../../core/options.js'
import { listedError } from '../../core/text/error-text.js'
import type { Redacted } from '../../core/text/redact.js'
import { readLetterDetail } from '../../ports/letter-detail.js'
import type { Backend, DeadLetter, DeadLetterSink } from '../../ports/ports.js'
import { readMessageBody } from '../../source/inlets/queue/message-body.js'
import { NotSupportedError } from '../../work/control/pause.js'
import type { OpsContext } from '../context.js'
import type { LetterFilter, LetterOps, LetterPage, LetterQuery, LetterReport, ListedLetter } from './api.js'

const DEFAULT_QUEUE = 'default'
const PAGE = 100
const MOST_LISTED = 1_000
/** Letters are read in steps of this size. */
const STEP = 500
/** A page with filters reads at most this many letters; the next one goes on behind them. */
const MOST_SCANNED = 5_000

/** The dead letters of one queue. */
export function sinkOf({ ports }: OpsContext, queue: string, call: string): DeadLetterSink {
  const port = queue === DEFAULT_QUEUE ? ports.queue : (ports as Backend).named?.(queue)
  if (port?.deadLetters === undefined)
    throw new NotSupportedError(`answer ops.${call}() for queue "${queue}"`, 'dead letter list')
  return port.deadLetters
}

/** Reads which letters are meant. */
export function readLetterFilter(owner: string, given: LetterFilter): LetterFilter & { readonly queue: string } {
  const { queue, class: failureClass, subject, error, before } = given
  const text = (name: string, value: unknown) =>
    value === undefined ? {} : { [name]: stringOption(`${owner}.${name}`, value) }
  if (before !== undefined && !Number.isFinite(before))
    throw new OptionTypeError(`${owner}.before`, 'an instant', before)
  return {
    queue: stringOption(`${owner}.queue`, queue, DEFAULT_QUEUE),
    ...(failureClass === undefined ? {} : { class: oneOfOption(`${owner}.class`, failureClass, FAILURE_CLASSES) }),
    ...text('subject', subject),
    ...text('error', error),
    ...(before === undefined ? {} : { before }),
  }
}

export const LETTER_FILTER_NAMES = ['queue', 'class', 'subject', 'error', 'before'] as const

export function doesMatch(filter: LetterFilter, letter: DeadLetter): boolean {
  const { class: failureClass, subject, error, before } = filter
  const detail = readLetterDetail(letter.detail)
  if (failureClass !== undefined && detail.class !== failureClass) return false
  if (subject !== undefined && detail.subject !== subject) return false
  if (error !== undefined && !letter.error.toLowerCase().includes(error.toLowerCase())) return false
  return before === undefined || letter.at < before
}

/** The queries of {@link LetterOps}. */
export function openLetterReads(context: OpsContext, redacted: Redacted): Pick<LetterOps, 'letters' | 'letter'> {
  return {
    async letters(query = {}): Promise<LetterPage> {
      const given = optionsObject<LetterQuery>('letters', query, [...LETTER_FILTER_NAMES, 'limit', 'cursor'])
      const filter = readLetterFilter('letters', given)
      const limit = integerOption('letters.limit', given.limit, { min: 1, max: MOST_LISTED, default: PAGE })
      const sink = sinkOf(context, filter.queue, 'letters')
      const found: DeadLetter[] = []
      let after = given.cursor === undefined ? undefined : stringOption('letters.cursor', given.cursor)
      for (let scanned = 0; scanned < MOST_SCANNED; scanned += STEP) {
        const step = await sink.list({ ...(after === undefined ? {} : { after }), limit: STEP })
        for (const letter of step) {
          if (found.length === limit)
            return { letters: found.map(listed), ...(after === undefined ? {} : { next: after }) }
          after = letter.cursor
          if (doesMatch(filter, letter)) found.push(letter)
        }
        if (step.length < STEP) return { letters: found.map(listed) }
      }
      return { letters: found.map(listed), ...(after === undefined ? {} : { next: after }) }

      function listed(letter: DeadLetter): ListedLetter {
        return listedLetter(letter, filter.queue, redacted)
      }
    },
    async letter(id, where = {}): Promise<LetterReport | undefined> {
      const wanted = stringOption('letter(id)', id)
      const { queue } = readLetterFilter('letter', optionsObject('letter', where, ['queue']))
      const letter = await findLetter(sinkOf(context, queue, 'letter'), wanted)
      return letter === undefined ? undefined : letterReport(letter, queue, redacted)
    },
  }
}

/** Letters are found by their order, not by their ids: people ask for few of them. */
export async function findLetter(sink: DeadLetterSink, id: string): Promise<DeadLetter | undefined> {
  for (let after: string | undefined; ; ) {
    const step = await sink.list({ ...(after === undefined ? {} : { after }), limit: STEP })
    const found = step.find((letter) => letter.id === id)
    if (found !== undefined || step.length < STEP) return found
    after = step.at(-1)?.cursor
  }
}

function listedLetter(letter: DeadLetter, queue: string, redacted: Redacted): ListedLetter {
  const { id, at, error } = letter
  const { class: failureClass, subject, attempts, source } = readLetterDetail(letter.detail)
  return {
    ...{ id, queue, at },
    error: listedError(redacted('error', error, { id, type: subject ?? queue })),
    ...(failureClass === undefined ? {} : { class: failureClass, reason: classLabel(failureClass) }),
    ...(subject === undefined ? {} : { subject }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(source === undefined || source === '' ? {} : { source }),
  }
}

function letterReport(letter: DeadLetter, queue: string, redacted: Redacted): LetterReport {
  const { id, body, error } = letter
  const wrapped = readMessageBody(body)
  const value = wrapped === undefined ? body : (wrapped.text ?? Buffer.from(wrapped.value).toString('base64'))
  const report = listedLetter(letter, queue, redacted)
  const about = { id, type: report.subject ?? queue }
  return {
    ...report,
    error: redacted('error', error, about),
    value: redacted('input', value, about),
    headers: wrapped?.headers.entries() ?? [],
    ...(wrapped?.key === undefined ? {} : { key: wrapped.key }),
  }
}

import { defined } from '../../core/defined.js'
import { FAILURE_CLASSES } from '../../core/failure/failure.js'
import type { LetterActionOptions, LetterActionReport, LetterFilter, LetterSelector } from '../../ops/letters/api.js'
import { ACTOR_FLAGS, actorOf, COUNT_INSTEAD, isConfirmed, watched } from '../bulk.js'
import { type Call, type Command, defineCommand } from '../command.js'
import { EXIT, type ExitCode } from '../exit.js'
import { countFlag, type Flags, type Values } from '../input/flags.js'
import { counted, countText } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import { UsageError } from '../usage-error.js'
import { classCell } from '../views/states.js'
import { agoText } from '../views/times.js'

const LETTER_FLAGS = {
  queue: { kind: 'text', value: '<queue>', about: 'on this queue; default: default' },
  class: { kind: 'word', value: '<class>', words: FAILURE_CLASSES, about: 'dead-lettered with this class' },
  subject: { kind: 'text', value: '<subject>', about: 'of this subject' },
  error: { kind: 'text', value: '<text>', about: 'with this text in the error' },
  before: { kind: 'instant', value: '<time>', about: 'dead-lettered before this time; 2h means two hours ago' },
} as const satisfies Flags

const PAGE = 50

/** The filter that the flags spell. */
function filterOf(flags: Values<typeof LETTER_FLAGS>): LetterFilter {
  const { queue, class: failureClass, subject, error, before } = flags
  return defined({ queue, class: failureClass, subject, error, before })
}

export const letters = defineCommand({
  name: 'letters',
  summary: 'dead letters of streams on a queue, oldest first; with an id, one of them whole',
  operands: '[<id>]',
  atMost: 1,
  about: [
    'Dead letters are messages that the streams of this backend stopped delivering. Items of work that died are in: millrace list state:dead.',
  ],
  flags: {
    ...LETTER_FLAGS,
    limit: countFlag('how many at most; default: 50', 'n'),
    cursor: { kind: 'text', value: '<cursor>', about: 'continue where the last page ended' },
  },
  examples: [
    ['millrace letters --queue orders', 'the dead letters of the stream on queue orders'],
    ['millrace letters --queue orders --class poison', 'what can never succeed'],
    ['millrace letters 019a8f-7 --queue orders', 'one letter, with its headers and its value'],
  ],
  async run({ io, screen, flags, operands, isJson, ops: open }) {
    const ops = await open()
    const [id] = operands
    if (id !== undefined) {
      const letter = await ops.letter(id, flags.queue === undefined ? {} : { queue: flags.queue })
      if (letter === undefined) {
        if (isJson) screen.json(null)
        else screen.line('There is no dead letter with this id on this queue.')
        return EXIT.negative
      }
      if (isJson) screen.json(letter)
      else {
        const facts = [
          ['id', letter.id],
          ['queue', letter.queue],
          ['when', agoText(letter.at, io.clock.now())],
          ['reason', letter.reason ?? ''],
          ['attempts', letter.attempts === undefined ? '' : String(letter.attempts)],
          ['subject', letter.subject ?? ''],
          ['stream', letter.source ?? ''],
          ['key', letter.key ?? ''],
          ...letter.headers.map(({ key, value }) => [`header ${key}`, value]),
          ['error', letter.error],
          ['value', letter.value],
        ]
        for (const [name, value] of facts) if (value !== '') screen.line(`${clean(name!)}: ${clean(value!)}`)
      }
      return EXIT.done
    }
    const page = await ops.letters({
      ...filterOf(flags),
      limit: flags.limit ?? PAGE,
      ...(flags.cursor === undefined ? {} : { cursor: flags.cursor }),
    })
    if (isJson) {
      screen.json(page)
      return EXIT.done
    }
    const now = io.clock.now()
    if (page.letters.length === 0)
      screen.line(page.next === undefined ? 'No dead letter matches.' : 'None on this page.')
    else
      screen.table(
        [
          { title: 'id', min: 14 },
          { title: 'when' },
          { title: 'class' },
          { title: 'attempts', align: 'right', spare: 2 },
          { title: 'subject', min: 6, spare: 1 },
          { title: 'error', min: 12 },
        ],
        page.letters.map((letter) => [
          letter.id,
          agoText(letter.at, now),
          classCell(letter.class),
          letter.attempts === undefined ? '' : String(letter.attempts),
          letter.subject ?? '',
          letter.error,
        ]),
      )
    if (page.next !== undefined) screen.note(`There are more: --cursor ${page.next}`)
    return EXIT.done
  },
})

const ACTION_FLAGS = {
  all: { kind: 'switch', about: 'every dead letter of the queue' },
  ...LETTER_FLAGS,
  'dry-run': { kind: 'switch', about: 'only count the letters' },
  yes: { kind: 'switch', short: 'y', about: 'do not ask for confirmation' },
  ...ACTOR_FLAGS,
} as const satisfies Flags

type ActionCall = Call<typeof ACTION_FLAGS>

interface LetterCommand {
  readonly name: string
  readonly past: string
  readonly summary: string
  readonly examples: Command['examples']
  act(call: ActionCall, what: LetterSelector, by: LetterActionOptions): Promise<LetterActionReport>
}

function defineLetterAction(command: LetterCommand): Command {
  return defineCommand({
    name: command.name,
    summary: command.summary,
    operands: '[<id>]',
    atMost: 1,
    about: [
      'Applies to one letter, to those that the flags name, or with --all to every letter of the queue. It shows how many it would change and asks; without a terminal it needs --yes. To go on after an interruption, repeat it.',
    ],
    flags: ACTION_FLAGS,
    examples: command.examples,
    run: (call) => runAction(call, command),
  })
}

function selectorOf({ flags, operands }: ActionCall, name: string): LetterSelector {
  const { queue, ...narrow } = filterOf(flags)
  const on = queue === undefined ? {} : { queue }
  const isNarrow = Object.keys(narrow).length > 0
  const [id] = operands
  if (id !== undefined) {
    if (isNarrow || flags.all) throw new UsageError('Give either an id, filters, or --all.', name)
    return { id, ...on }
  }
  if (isNarrow && flags.all) throw new UsageError('Give either filters or --all, not both.', name)
  if (!isNarrow && !flags.all)
    throw new UsageError('Which letters? Give an id, a filter such as --class poison, or --all.', name)
  return { ...narrow, ...on }
}

async function runAction(call: ActionCall, { name, past, act }: LetterCommand): Promise<ExitCode> {
  const { screen, flags, isJson } = call
  const what = selectorOf(call, name)
  const by = actorOf(call)
  const isOne = 'id' in what
  if (flags['dry-run'] || (!flags.yes && !isOne)) {
    const { total } = await act(call, what, { ...by, dryRun: true })
    if (flags['dry-run']) {
      if (isJson) screen.json({ total, dryRun: true })
      else screen.line(`${name} would change ${counted(total, 'letter')}.`)
      return EXIT.done
    }
    const asked = `${name} ${counted(total, 'letter')}`
    if (total > 0 && !(await isConfirmed(call, name, asked, COUNT_INSTEAD))) return EXIT.negative
  }
  const report = await watched(call, name, ({ progress, signal }) =>
    act(call, what, {
      ...by,
      signal,
      onProgress: ({ done, passed, total }) => progress.show(done + passed, total, undefined),
    }),
  )
  if (isJson) screen.json(report)
  else {
    const gone = report.passed === 0 ? '' : `; ${countText(report.passed)} had gone`
    screen.line(`${past} ${counted(report.done, 'letter')}${gone}.`)
    if (report.state !== 'done') screen.line(`It stopped early: ${clean(report.because ?? '')}.`)
  }
  const isFound = !isOne || report.total > 0
  return report.state === 'done' && isFound ? EXIT.done : EXIT.negative
}

export const redriveLetters = defineLetterAction({
  name: 'redrive-letters',
  past: 'Redrove',
  summary: 'put dead letters of streams back on their queue, with their headers',
  examples: [
    ['millrace redrive-letters --queue orders --class retryable --why "the bank is back"', 'what ran out of attempts'],
    ['millrace redrive-letters --queue orders --all --dry-run', 'count them first'],
  ],
  act: async ({ ops }, what, by) => (await ops()).redriveLetters(what, by),
})

export const discardLetters = defineLetterAction({
  name: 'discard-letters',
  past: 'Discarded',
  summary: 'remove dead letters of streams completely',
  examples: [['millrace discard-letters --queue orders --before 30d --yes', 'the old ones, from a script']],
  act: async ({ ops }, what, by) => (await ops()).discardLetters(what, by),
})

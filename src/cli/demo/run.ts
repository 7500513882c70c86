import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { overPlainPorts } from '../../backends/plain/over-plain-ports.js'
import { sqliteBackend } from '../../backends/sqlite/backend.js'
import { mintingIds } from '../../core/ids.js'
import { createWorkOn } from '../../work/create-work.js'
import type { WorkEvent } from '../../work/observe/events.js'
import type { Call } from '../command.js'
import type { DEMO_FLAGS } from '../commands/demo.js'
import { EXIT, type ExitCode } from '../exit.js'
import { wrap } from '../screen.js'
import { clean } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'
import { wrapText } from '../terminal/wrap.js'
import { UsageError } from '../usage-error.js'
import { demoWork } from './work.js'

const HOUR_MS = 3_600_000
/** The demonstration continues after this long in any case. */
const TIMEOUT_MS = 10_000

/** Work runs, some of it fails in two ways, and a person inspects, fixes and redrives it with the real commands. */
export async function runDemo({ io, screen, flags, isJson, again }: Call<typeof DEMO_FLAGS>): Promise<ExitCode> {
  if (isJson) throw new UsageError('demo is for people: it has no --json.', 'demo')
  const { paint, columns } = screen
  const { clock } = io
  const folder = mkdtempSync(join(tmpdir(), 'millrace-demo-'))
  const file = join(folder, 'demo.db')
  const begun = clock.monotonic()
  const say = (text: string) => {
    screen.line()
    screen.lines(wrap(text, columns).map((line) => paint('title', line)))
    screen.line()
  }
  /** Types a command for the reader. */
  const type = async (...args: string[]): Promise<void> => {
    screen.line(paint('name', `$ millrace ${args.map((arg) => (/[\s"']/.test(arg) ? `'${arg}'` : arg)).join(' ')}`))
    await again([...args, '--backend', `sqlite:${file}`])
    screen.line()
  }

  const { greet, charge, label, addStreet } = demoWork()
  const succeeded = new Map<string, () => void>()
  const success = (id: string): Promise<void> => new Promise((resolve) => succeeded.set(id, resolve))
  const backend = sqliteBackend({ file, clock })
  const work = createWorkOn(
    { memoryBackend: () => backend, overPlainPorts },
    {
      backend,
      work: [greet, charge, label] as const,
      clock,
      // Errors reject what is awaited below, and are shown once.
      onError: () => undefined,
      onEvent: (event) => {
        if (event.kind === 'succeeded') succeeded.get(event.id)?.()
        screen.lines(storyLines(event, clock.monotonic() - begun, paint, columns))
      },
    },
  )
  try {
    say(
      'Three kinds of work are enqueued on a SQLite file. No server is needed; a fleet would use PostgreSQL or Redis.',
    )
    const now = [
      await mintingIds(
        () => 'greet/ada',
        () => greet({ name: 'Ada' }),
      ),
      await mintingIds(
        () => 'charge/o-1',
        () => charge({ order: 'o-1' }),
      ),
      await mintingIds(
        () => 'label/o-1',
        () => label({ street: 'Mill Lane' }),
      ),
      await mintingIds(
        () => 'label/o-2',
        () => label({ street: 'Nowhere' }),
      ),
    ]
    const later = await mintingIds(
      () => 'greet/grace',
      () => greet({ name: 'Grace' }),
    )
    await work.enqueue(later, { delay: HOUR_MS }).accepted()
    const isPaid = success('charge/o-1')
    await Promise.all(now.map((one) => work.enqueue(one).group()))
    // The event comes a moment after the group.
    await Promise.race([isPaid, clock.sleep(TIMEOUT_MS)])

    say(
      'The flaky charge was retried automatically. The label is poison: it is dead-lettered with its reason, and nothing is lost. What is the state now?',
    )
    await type('overview')
    await type('failures')
    say('Why is it not running?')
    await type('explain', 'label/o-2')
    await type('explain', 'greet/grace')
    say('Someone fixes the map and redrives the dead label. The log stores who did it, and why.')
    addStreet('Nowhere')
    const isDone = success('label/o-2')
    await type('redrive', 'label/o-2', '--why', 'the street is on the map now')
    await Promise.race([isDone, clock.sleep(TIMEOUT_MS)])
    screen.line()
    await type('list', 'state:completed')
    await type('log')
  } finally {
    await work.stop()
    await backend.close()
    if (!flags.keep) rmSync(folder, { recursive: true, force: true })
  }
  if (flags.keep) {
    screen.line(`The file is still there. Explore it:`)
    screen.line()
    screen.line(`  export MILLRACE_BACKEND=sqlite:${file}`)
    screen.line(`  millrace show label/o-2`)
  } else screen.line('That was all; the file is deleted. Use --keep to keep and explore it.')
  return EXIT.done
}

/** The width of the ids of the demonstration. */
const ID_WIDTH = 12

/** An event as lines of the demonstration, its text wrapped beside its id; none for less interesting ones. */
export function storyLines(event: WorkEvent, sinceMs: number, paint: Paint, columns: number): string[] {
  const said = sentence(event)
  if (said === undefined) return []
  const [what, tone, rest] = said
  const id = 'id' in event ? clean(event.id) : ''
  const time = `${(sinceMs / 1_000).toFixed(2).padStart(6)} s`
  const before = `${time}  ${what.padEnd(8)}  ${id.padEnd(ID_WIDTH)} `.length
  const [first = '', ...more] = wrapText(clean(rest), Math.max(LEAST_TEXT, columns - before))
  return [
    `${time}  ${paint(tone, what.padEnd(8))}  ${id.padEnd(ID_WIDTH)} ${first}`.trimEnd(),
    ...more.map((line) => ' '.repeat(before) + line),
  ]
}

/** Text is not wrapped to less than this. */
const LEAST_TEXT = 20

function sentence(
  event: WorkEvent,
): readonly [what: string, tone: 'plain' | 'good' | 'warn' | 'bad' | 'dim', rest: string] | undefined {
  switch (event.kind) {
    case 'queued':
      return ['accepted', 'dim', event.startAt - event.at > 1_000 ? 'for later' : '']
    case 'succeeded':
      return ['done', 'good', event.attempt === 1 ? '' : `on attempt ${event.attempt}`]
    case 'failed':
      return event.willRetry
        ? ['failed', 'warn', `attempt ${event.attempt}: ${event.error} (${event.class}: retried)`]
        : ['dead', 'bad', `attempt ${event.attempt}: ${event.error} (${event.class}: not retried)`]
    case 'deferred':
    case 'expired':
    case 'cancelled':
      return [event.kind, 'dim', '']
    case 'started':
    case 'group-done':
      return undefined
  }
}

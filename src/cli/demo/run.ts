import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteBackend } from '../../backends/sqlite/backend.js'
import { mintingIds } from '../../core/ids.js'
import { createWorkOn } from '../../work/create-work.js'
import type { Call } from '../command.js'
import { EXIT, type ExitCode } from '../exit.js'
import { wrap } from '../screen.js'
import { UsageError } from '../usage-error.js'
import type { DEMO_FLAGS } from './flags.js'
import { storyLine } from './story.js'
import { demoWork } from './work.js'

const HOUR_MS = 3_600_000
/** The story goes on without it then: a demonstration must end. */
const PATIENCE_MS = 10_000

/** The story: work runs, some of it fails in two ways, and a person looks, mends and redrives with the real commands. */
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
  const work = createWorkOn(() => backend, {
    backend,
    work: [greet, charge, label] as const,
    clock,
    // What goes wrong rejects what is awaited below, and is shown once.
    onError: () => undefined,
    onEvent: (event) => {
      if (event.kind === 'succeeded') succeeded.get(event.id)?.()
      const line = storyLine(event, clock.monotonic() - begun, paint, columns)
      if (line !== undefined) screen.line(line)
    },
  })
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
    // The event comes a moment after the group has heard.
    await Promise.race([isPaid, clock.sleep(PATIENCE_MS)])

    say(
      'The flaky charge was tried again by itself. The label is poison: it is parked with its reason, and nothing is lost. What stands where now?',
    )
    await type('overview')
    await type('failures')
    say('Why is it not running?')
    await type('explain', 'label/o-2')
    await type('explain', 'greet/grace')
    say('Somebody mends the map, and gives the parked label another chance. Who and why is on record.')
    addStreet('Nowhere')
    const isDone = success('label/o-2')
    await type('redrive', 'label/o-2', '--why', 'the street is on the map now')
    await Promise.race([isDone, clock.sleep(PATIENCE_MS)])
    screen.line()
    await type('list', 'state:completed')
    await type('log')
  } finally {
    await work.stop()
    await backend.close()
    if (!flags.keep) rmSync(folder, { recursive: true, force: true })
  }
  if (flags.keep) {
    screen.line(`The file is still there. Look around in it:`)
    screen.line()
    screen.line(`  export MILLRACE_BACKEND=sqlite:${file}`)
    screen.line(`  millrace show label/o-2`)
  } else screen.line('That was all; the file is gone. Keep it with --keep, and look around in it.')
  return EXIT.done
}

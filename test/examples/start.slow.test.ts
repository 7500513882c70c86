import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'
import { noTerminal, Terminal } from '../cli/terminal.js'

/** Each in its own folder; in parallel, since they mostly wait for leases and for the schedule. */
async function inHome(test: (home: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'millrace-start-'))
  try {
    await test(home)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const alive = new Set<ChildProcess>()
afterAll(() => {
  for (const child of alive) child.kill('SIGKILL')
})

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
}

type Interfere = (stdout: string, child: ChildProcess) => void

/** Runs a program with a fast story. `interfere` sees all of its output so far, whenever there is more. */
function run(home: string, command: string, args: readonly string[], interfere?: Interfere): Promise<Ended> {
  const pace = { MILLRACE_START_DIR: home, MILLRACE_START_PACE: '0.1' }
  const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, 'tsconfig.build.json'), ...pace }
  const child = spawn(command, args, { cwd: root, env, stdio: ['pipe', 'pipe', 'inherit'] })
  alive.add(child)
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    interfere?.(stdout, child)
  })
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      alive.delete(child)
      resolve({ code, signal, stdout })
    })
  })
}

/** The application itself. */
function start(home: string, args: readonly string[], interfere?: Interfere): Promise<Ended> {
  const program = typescriptProgram('examples/start.ts', args)
  return run(home, program.command, program.args, interfere)
}

/** The first time that it comes to this. */
function onceThat(isIt: (stdout: string) => boolean, act: (child: ChildProcess) => void): Interfere {
  let isDone = false
  return (stdout, child) => {
    if (isDone || !isIt(stdout)) return
    isDone = true
    act(child)
  }
}

/** Once its output has so many lines. */
function atLine(count: number, act: (child: ChildProcess) => void): Interfere {
  return onceThat((stdout) => stdout.split('\n').length > count, act)
}

/** The rows of the table below a heading, as cells. */
function tableOf(stdout: string, heading: string): readonly (readonly string[])[] {
  const [, below = ''] = stdout.split(`\n${heading}`)
  const [, block = ''] = below.split('\n\n')
  const [, ...rows] = block.split('\n')
  return rows.map((row) => row.trim().split(/ {3,}/))
}

/** Root may read everything, so root becomes the user nobody. */
const NOBODY = 65_534
const somebodyElse = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

const ESCAPE = '\u001b'

const TYPES = [
  ['bake-order', '3', '3', '0', '0', 'yes'],
  ['bake-line', '7', '7', '0', '0', 'yes'],
  ['@work/dependency', '3', '3', '0', '0', 'yes'],
  ['charge', '3', '3', '0', '6', 'yes'],
  ['print-label', '3', '2', '1', '0', 'yes'],
  ['deliver', '3', '3', '0', '0', 'yes'],
]

interface OutsideRow {
  readonly kind: string
  readonly subject: string
  readonly times: number
  readonly amount: number
}

/** What happened outside, read from its own file and without the program's help. */
function outside(file: string) {
  const db = new Database(file, { readonly: true })
  try {
    const rows = db
      .prepare<[], OutsideRow>(
        'select kind, subject, count(*) as times, sum(amount) as amount from effect group by kind, subject',
      )
      .all()
    return { rows, of: (kind: string) => rows.filter((row) => row.kind === kind) }
  } finally {
    db.close()
  }
}

/** The words of the guild, each with a word of the sentence that explains it. */
const GUILD_WORDS = [
  ['writ', 'A writ is something'],
  ['follows', 'A writ that follows'],
  ['rig', 'A rig is'],
  ['engine', 'An engine is'],
  ['stuck', 'A writ is stuck when'],
  ['Clockworks-Retry', 'Clockworks-Retry opens'],
] as const

const launcher = join(root, 'scripts', 'start.mjs')

describe.concurrent('npm start -- --once', () => {
  it('tells the story, prints all outcomes, and exits with 0; the next run starts over', () =>
    inHome(async (home) => {
      const { code, stdout } = await run(home, process.execPath, [launcher, '--once'])

      expect(code, stdout).toBe(0)
      // Piped: nothing but plain text.
      expect(stdout).not.toContain(ESCAPE)
      expect(stdout).toMatch(/put off +order\/\w+\/deliver +for \d+\.\d s, still attempt 1$/m)
      expect(stdout).toMatch(
        /failed +order\/Ada\/charge +attempt 2: .* \(retryable by rule "http-503": will be tried again\)$/m,
      )
      expect(stdout).toMatch(/done +order\/Ada\/charge +on attempt 3$/m)
      expect(stdout).toMatch(/dead +order\/Grace\/label +attempt 1: .* \(poison by rule "explicit": never again\)$/m)
      expect(stdout).toMatch(/reopened +rye loaf .*\n(.*\n)*.*completed +rye loaf$/m)
      // The orders first, in plain words; then the guild, each of its words explained once, when it first comes up.
      const [orders = '', guild = ''] = stdout.split('The orders are done.')
      expect(orders).toMatch(/done +order\/Barbara\/deliver$/m)
      expect(orders).not.toMatch(/writ|\brig\b|engine|guild|stuck|clockworks/i)
      for (const [word, explanation] of GUILD_WORDS) {
        expect(guild.split(explanation), word).toHaveLength(2)
        const [before = ''] = guild.split(explanation)
        expect(before, word).not.toMatch(new RegExp(`\\b${word}\\b`))
      }
      expect(tableOf(stdout, 'What became of the work')).toEqual([
        ...TYPES,
        ['feed-sourdough', '4', '4', '0', '0', 'yes'],
        ['spider.engine', '10', '10', '0', '0', 'yes'],
      ])
      expect(tableOf(stdout, 'The bills')).toEqual([
        ['Ada', '41.90', '1 × cake, 10 × pretzel, 2 × rye'],
        ['Grace', '15.00', '3 × wheat, 4 × pretzel'],
        ['Barbara', '8.00', '1 × rye, 1 × wheat'],
      ])
      expect(tableOf(stdout, 'Dead')).toEqual([
        ['order/Grace/label', 'poison', '1', 'PoisonError: there is no street "Nowhere 0"'],
      ])
      expect(tableOf(stdout, 'What the guild owed').map((row) => row.slice(0, 3))).toEqual([
        ['rye loaf', 'completed', '2'],
        ['sandwiches', 'completed', '1'],
        ['wedding cake', 'stuck', '2'],
        ['wedding table', 'open', '0'],
      ])

      const again = await start(
        home,
        ['--once'],
        atLine(1, (child) => child.kill('SIGKILL')),
      )
      expect(again.stdout).toMatch(/^A day in the bakery.*run-1\.2/)
    }))

  it('says what it takes when it is given something else', () => {
    const { status, stderr } = spawnSync(process.execPath, [launcher, '--ones'], { encoding: 'utf8' })

    expect(status).toBe(1)
    expect(stderr).toContain('does not know "--ones"')
  })
})

describe('a place where no folder can be', () => {
  // /proc exists, and takes no folder: Node's own recursive mkdir never comes back from there.
  const places = ['/proc/nope', '/proc/nope/deeper', join(root, 'package.json')].filter(
    (place) => !place.startsWith('/proc') || process.platform === 'linux',
  )

  it.each(places)('%s is refused in words', async (home) => {
    const { command, args } = typescriptProgram('examples/start.ts', ['--once'])
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: root,
      env: { ...process.env, MILLRACE_START_DIR: home },
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(
      /^Cannot (make|read) the folder .*: E\w+: .*\nSet MILLRACE_START_DIR to a folder that can be written to\.\n$/,
    )
  })
})

describe('a run that another process has begun', () => {
  // Other users cannot read a clone below /root.
  const canRead = spawnSync('test', ['-r', join(root, 'examples', 'start.ts')], somebodyElse).status === 0

  it.skipIf(!canRead)('is left alone, in words', () => {
    const home = mkdtempSync(join(tmpdir(), 'millrace-start-'))
    try {
      mkdirSync(join(home, 'run-1.1'))
      chmodSync(home, 0o755)
      chmodSync(join(home, 'run-1.1'), 0o555)
      const { command, args } = typescriptProgram('examples/start.ts', ['--once'])
      const { status, stdout, stderr } = spawnSync(command, args, {
        cwd: root,
        env: { ...process.env, TSX_DISABLE_CACHE: '1', MILLRACE_START_DIR: home },
        encoding: 'utf8',
        ...somebodyElse,
      })
      expect([status, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^Cannot .*: EACCES: .*\nSet MILLRACE_START_DIR to a folder that can be written to\.\n$/)
    } finally {
      chmodSync(join(home, 'run-1.1'), 0o755)
      rmSync(home, { recursive: true, force: true })
    }
  })
})

describe.concurrent('the application, interrupted and killed in the middle and started again', () => {
  it('loses nothing and repeats nothing, by what is on record outside', () =>
    inHome(async (home) => {
      const handedBack = await start(
        home,
        [],
        atLine(12, (child) => child.kill('SIGINT')),
      )
      expect(handedBack).toMatchObject({ code: 0 })
      expect(handedBack.stdout).toMatch(/Interrupted\. [1-9]\d* items have not ended/)
      const file = join(home, 'run-1.1', 'work.db')
      expect(handedBack.stdout).toContain(`export MILLRACE_BACKEND=sqlite:${file}\n  npx millrace overview\n`)

      const lines: number[] = []
      for (let kill = 1; kill <= 3; kill += 1) {
        const line = 3 + Math.floor(Math.random() * 20)
        lines.push(line)
        const killed = await start(
          home,
          ['--once'],
          atLine(line, (child) => child.kill('SIGKILL')),
        )
        expect(killed.stdout).toMatch(/^Going on with the day/)
        // Where little was left, it may have come to its end first.
        if (killed.signal === null) break
      }
      const last = await start(home, ['--once'])

      const where = `killed at lines ${lines.join(', ')}:\n${last.stdout}`
      expect(last.code, where).toBe(0)
      const { rows, of } = outside(join(home, 'run-1.1', 'outside.db'))
      expect(
        rows.filter(({ times }) => times !== 1),
        where,
      ).toEqual([])
      expect(
        of('payment').map(({ subject, amount }) => [subject, amount]),
        where,
      ).toEqual([
        ['Ada', 4_190],
        ['Barbara', 800],
        ['Grace', 1_500],
      ])
      expect(
        of('label').map(({ subject }) => subject),
        where,
      ).toEqual(['Ada', 'Barbara'])
      expect(of('feed').length, where).toBeGreaterThanOrEqual(4)
      expect(of('shelf').length, where).toBeLessThanOrEqual(2)
    }))
})

describe.concurrent('npm start', () => {
  it('stays up when the story is over, with the schedule going on, until Ctrl-C', () =>
    inHome(async (home) => {
      const isFedOn = (text: string) => text.split('The books are right')[1]?.includes('done      sourdough@') === true
      const { code, stdout } = await start(
        home,
        [],
        onceThat(isFedOn, (child) => child.kill('SIGINT')),
      )

      expect(code, stdout).toBe(0)
      expect(tableOf(stdout, 'What became of the work').slice(0, TYPES.length)).toEqual(TYPES)
      expect(stdout).toMatch(/Interrupted\. (Nothing is left over|\d items have not ended)/)
    }))

  it.skipIf(process.platform !== 'linux')('on a terminal ends in the live overview, which q ends', () =>
    inHome(async (home) => {
      const { command, args } = typescriptProgram('examples/start.ts')
      // `script` gives it its own terminal, with a size.
      const line = ['stty cols 120 rows 40;', command, ...args].join(' ')
      const isShown = (text: string) => text.split(`${ESCAPE}[?1049h`)[1]?.includes('feed-sourdough') === true
      const { code, stdout } = await run(
        home,
        'script',
        // The environment of the tests may turn colours off.
        ['-qec', `unset CI NO_COLOR NODE_DISABLE_COLORS; export TERM=xterm-256color; ${line}`, '/dev/null'],
        onceThat(isShown, (child) => child.stdin?.write('q')),
      )

      expect(code, stdout).toBe(0)
      expect(stdout).toContain(`${ESCAPE}[32mdone`)
      expect(stdout.split(`${ESCAPE}[?1049l`)[1]).toContain('Interrupted. ')
    }),
  )
})

describe.skipIf(noTerminal !== undefined).each([80, 120])(
  'npm start -- --once on a terminal of %i columns',
  (columns) => {
    it('breaks no line in the middle of a word', () =>
      inHome(async (home) => {
        const terminal = new Terminal(`start-${columns}`)
        // The folder has a short name, because a path is one word.
        const folder = join(home, 'x')
        terminal.open(columns, 200, { MILLRACE_START_DIR: folder, MILLRACE_START_PACE: '0.1' })
        try {
          await terminal.type(`clear; cd '${root}'; '${process.execPath}' '${launcher}' --once; echo "ended with $?"`)
          const seen = await terminal.shows('ended with 0')
          expect(seen).toContain('The books are right')
          // What the terminal itself had to break is all that these two could differ in.
          expect(trimmed(await terminal.unbroken())).toEqual(trimmed(seen))
          const [, story = ''] = seen.split('A day in the bakery')
          expect(Math.max(...story.split('\n').map(({ length }) => length))).toBeLessThan(columns)
        } finally {
          terminal.close()
        }
      }))
  },
)

function trimmed(screen: string): string[] {
  // Below the command, which is longer than a line.
  const [, story = ''] = screen.split('A day in the bakery')
  return story.split('\n').map((line) => line.trimEnd())
}

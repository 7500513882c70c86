import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWork, defineWork, PoisonError } from 'millrace'
import { type SqliteBackend, sqliteBackend } from 'millrace/sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { root } from '../../../scripts/lib/root.mjs'

const MAIN = join(root, 'dist/cli/main.js')
const NOBODY = 65_534
/** Modes mean nothing to root, so root looks as another user. */
const asAnother = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

const sends = defineWork('sends', () => 'sent')
const dies = defineWork('dies', () => {
  throw new PoisonError('refused')
})

let folder = ''
let file = ''
let backend: SqliteBackend

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-read-only-'))
  file = join(folder, 'work.db')
  backend = sqliteBackend({ file })
  const w = createWork({ backend, work: [sends, dies], autoStart: false })
  for (const work of [sends(undefined), dies(undefined)]) await w.add(work)
  await w.runUntilIdle()
  await w.add(sends(undefined), { delay: 3_600_000 })
})

afterEach(async () => {
  await backend.close()
  chmodSync(folder, 0o755)
  rmSync(folder, { recursive: true, force: true })
})

/** Nothing in the folder may be written any more, by anyone but root. */
function seal(): void {
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444)
  chmodSync(folder, 0o555)
}

function millrace(...args: string[]) {
  return run([MAIN, ...args, '--backend', `sqlite:${file}`])
}

function run(args: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { ...asAnother, cwd: root, encoding: 'utf8' })
  return { stdout, stderr, status }
}

const READS = ['list', 'overview', 'failures', 'audit', 'workers', 'schedules', 'log', 'actions'] as const

describe('a SQLite file that may only be read', () => {
  it('is looked at by every command that reads, in a directory that may not be written', async () => {
    await backend.close()
    expect(readdirSync(folder)).toEqual(['work.db'])
    seal()

    for (const command of READS)
      expect([command, millrace(command)]).toMatchObject([command, { status: 0, stderr: '' }])
    const { items } = JSON.parse(millrace('list', '--json').stdout) as { items: { id: string; state: string }[] }
    expect(items.map(({ state }) => state).sort()).toEqual(['completed', 'dead', 'scheduled'])
    const dead = items.find(({ state }) => state === 'dead')!
    expect(millrace('show', dead.id).stdout).toContain('PoisonError: refused')
    expect(millrace('explain', dead.id).stdout).toContain('It died')
    expect(readdirSync(folder)).toEqual(['work.db'])
  })

  it('is looked at in a directory that may be written, too', async () => {
    await backend.close()
    chmodSync(file, 0o444)
    chmodSync(folder, 0o777)

    expect(millrace('list')).toMatchObject({ status: 0, stderr: '' })
  })

  it('shows what its worker has just written, while that has it open', () => {
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644)
    chmodSync(folder, 0o755)
    expect(existsSync(`${file}-wal`)).toBe(true)

    const { items } = JSON.parse(millrace('list', '--json').stdout) as { items: unknown[] }
    expect(items).toHaveLength(3)
  })

  it('is not shown without the changes that a killed worker has left in its log: the error says what to do', () => {
    const copy = join(folder, 'copy.db')
    copyFileSync(file, copy)
    copyFileSync(`${file}-wal`, `${copy}-wal`)
    file = copy
    seal()

    const { status, stderr } = millrace('list')
    expect(status).not.toBe(0)
    expect(stderr).toContain(`Its log "${copy}-wal" holds changes`)
    expect(stderr).toContain('copy both files into a directory of yours')
  })

  it('takes no work: a change fails with a clear error, and a worker reports it', async () => {
    await backend.close()
    seal()
    const program = `
      import { createWork, defineWork } from 'millrace'
      import { sqliteBackend } from 'millrace/sqlite'
      const sends = defineWork('sends', () => undefined)
      const errors = new Set()
      const backend = sqliteBackend({ file: ${JSON.stringify(file)} })
      const w = createWork({ backend, work: [sends], onError: (error) => errors.add(error.code) })
      const code = await w.add(sends(undefined)).catch((error) => error.code)
      while (errors.size === 0) await new Promise((next) => setTimeout(next, 20))
      await w.stop()
      await backend.close()
      console.log(JSON.stringify({ code, errors: [...errors] }))
    `
    const { stdout, stderr } = run(['--input-type=module', '-e', program])

    expect([stdout, stderr]).toEqual([
      `${JSON.stringify({ code: 'SQLITE_READ_ONLY', errors: ['SQLITE_READ_ONLY'] })}\n`,
      '',
    ])
    const paused = millrace('pause', 'type', 'sends')
    expect(paused.status).not.toBe(0)
    expect(paused.stderr).toContain(`This process may only read "${file}"`)
  })
})

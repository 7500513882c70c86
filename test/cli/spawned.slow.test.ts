import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createGuild } from 'millrace/guild'
import type { ClerkApi } from 'millrace/guild/clerk'
import { createStacks, sqliteStacks } from 'millrace/guild/stacks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fileWithDead, MAIN, millrace } from './fixtures.js'

const DEAD = 2_000
/** A busy machine starts a process late. */
const PATIENT = { timeout: 60_000, interval: 5 }

let folder = ''
let backend = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
  const file = join(folder, 'work.db')
  await fileWithDead(file, DEAD)
  backend = `sqlite:${file}`
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const on = (...args: string[]) => millrace(args, { MILLRACE_BACKEND: backend })

describe('a person with a file', () => {
  it('sees what is wrong, and why', async () => {
    const { out, code } = await on('overview')
    expect(code).toBe(0)
    expect(out).toMatch(/default +broken .* 2,000 /)
    const { failures } = JSON.parse((await on('failures', '--json')).out) as {
      failures: { fingerprint: string; dead: number }[]
    }
    expect(failures.reduce((sum, { dead }) => sum + dead, 0)).toBe(DEAD)
    const { items } = JSON.parse((await on('list', 'state:dead', '-n', '1', '--json')).out) as {
      items: { id: string }[]
    }
    expect((await on('explain', items[0]!.id)).out).toContain('It died (aborted, poison)')
    expect((await on('show', items[0]!.id)).out).toContain('PoisonError: no such thing ␛]0;owned␇ as')
  })

  it('gets from doctor whether the setup is sound', async () => {
    const { code, out } = await on('doctor')
    expect([code, out]).toEqual([0, expect.stringContaining('No problems found.')])
    expect(out).toMatch(/✓ server +SQLite \d/)
  })

  it('reads as much as it wants, without an error about the rest', () => {
    const { stdout, stderr, status } = spawnSync(
      'sh',
      [
        '-c',
        `"$NODE" "$MAIN" list --limit 2000 | head -n 2; "$NODE" "$MAIN" overview --watch --interval 100ms | head -n 1`,
      ],
      { env: { ...process.env, NODE: process.execPath, MAIN, MILLRACE_BACKEND: backend }, encoding: 'utf8' },
    )
    expect({
      lines: stdout.trimEnd().split('\n').length,
      stderr: stderr.replace(/^There are more.*\n/, ''),
      status,
    }).toEqual({
      lines: 3,
      stderr: '',
      status: 0,
    })
  })

  it('migrates, which is nothing when it was done', async () => {
    expect(await on('migrate')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^work: version \d+, unchanged\n$/),
    })
    const file = join(folder, 'new.db')
    expect((await millrace(['migrate', '--backend', `sqlite:${file}`])).out).toMatch(
      /^work: created tables, version \d+\n$/,
    )
    expect((await millrace(['overview', '--backend', `sqlite:${file}`])).out).toContain('There is no work.')
  })
})

describe('a query on a missing or foreign file', () => {
  it.each(['overview', 'doctor', 'writs', 'cancel x'])('%s creates nothing and exits with 3', async (command) => {
    const file = join(folder, `none-${command}.db`)
    const { code, out, err } = await millrace([...command.split(' '), '--backend', `sqlite:${file}`])
    expect([code, out]).toEqual([3, ''])
    expect(err).toContain(`There is no file ${file}. Nothing was created.`)
    expect(existsSync(file)).toBe(false)
  })

  it('leaves a foreign database unchanged', async () => {
    const file = join(folder, 'other.db')
    const other = new Database(file)
    other.exec('create table mine (a text)')
    other.close()
    const before = createHash('sha256').update(readFileSync(file)).digest('hex')
    for (const command of ['overview', 'writs']) {
      const { code, err } = await millrace([command, '--backend', `sqlite:${file}`])
      expect(code).toBe(3)
      expect(err).toContain('has no Millrace tables')
    }
    expect(createHash('sha256').update(readFileSync(file)).digest('hex')).toBe(before)
    writeFileSync(join(folder, 'letter.txt'), 'Dear Ada, this is no database.')
    expect((await millrace(['list', '--backend', `sqlite:${join(folder, 'letter.txt')}`])).err).toContain(
      'is not a SQLite database',
    )
  })

  it('makes no tables of a guild where there is none', async () => {
    const { code, err } = await on('writs')
    expect(code).toBe(3)
    expect(err).toContain('There are no guild documents')
    const db = new Database(backend.slice('sqlite:'.length), { readonly: true })
    expect(db.prepare("select name from sqlite_schema where name like 'stacks%'").all()).toEqual([])
    db.close()
  })
})

describe('a bulk action', () => {
  const deadNow = async () => {
    const { total } = JSON.parse((await on('discard', '--all', '--dry-run', '--json')).out) as { total: number }
    return total
  }

  it('that is interrupted stops after its page, says how to continue, and can be continued', async () => {
    const db = new Database(backend.slice('sqlite:'.length), { timeout: 10_000 })
    const dead = db.prepare('select count(*) from millrace_item where state = 6').pluck()
    // Some pages are done; then none can be, until we say so. The command tries again for some seconds, mostly asleep, which
    // is when the lock is ours; from then on it waits for us, however long we take.
    db.exec(`create trigger no_further before delete on millrace_item
      when (select count(*) from millrace_item where state = 6) <= ${DEAD / 2}
      begin select raise(abort, 'not yet'); end`)
    const stopped = await millrace(
      ['discard', 'type:broken', '--yes'],
      { MILLRACE_BACKEND: backend },
      async (child) => {
        await expect.poll(() => dead.get(), PATIENT).toBe(DEAD / 2)
        db.exec('begin immediate')
        child.kill('SIGINT')
        await expect.poll(() => child.err(), PATIENT).not.toBe('')
        db.exec('drop trigger no_further; commit')
      },
    )
    db.close()
    expect(stopped).toMatchObject({
      code: 1,
      signal: null,
      err: 'Stopping after this page. Press again to stop immediately.\n',
    })
    const id = /millrace continue (\S+)/.exec(stopped.out)?.[1]
    expect(id).toBeDefined()
    const left = await deadNow()
    expect(left).toBeGreaterThan(0)
    expect((await on('actions')).out).toContain('stopped')

    const { code, out } = await on('continue', id!)
    expect([code, out]).toEqual([0, `In total, discard changed ${DEAD.toLocaleString('en-US')} items.\n`])
    expect(await deadNow()).toBe(0)
    expect((await on('log', '--json')).out).toContain('goes on after')
  })
})

describe('a guild', () => {
  it('is read from the file of its documents', async () => {
    const file = join(folder, 'stacks.sqlite')
    const guild = await createGuild({
      config: { plugins: ['clerk'] },
      plugins: [
        {
          package: 'millrace/guild/stacks',
          plugin: { apparatus: createStacks({ backend: sqliteStacks({ file }) }) },
        },
      ],
    })
    const clerk = guild.apparatus<ClerkApi>('clerk')
    const order = await clerk.post({ title: "Ada's order", body: 'rye' })
    const part = await clerk.post({ title: 'rye \u001b[2J', body: '', parentId: order.id })
    await clerk.transition(part.id, 'stuck', { resolution: 'the oven is cold' })
    await guild.shutdown()

    const address = ['--backend', `sqlite:${file}`]
    const { out, code } = await millrace(['writs', ...address])
    expect(code).toBe(0)
    expect(out).toContain("Ada's order")
    expect(out).toContain('rye ␛[2J')
    const { writs } = JSON.parse((await millrace(['writs', '--phase', 'stuck', '--json', ...address])).out) as {
      writs: unknown[]
    }
    expect(writs).toMatchObject([{ id: part.id, parentId: order.id }])
    const mistyped = await millrace(['writs', '--phase', 'stuc', ...address])
    expect(mistyped).toMatchObject({ code: 0, out: 'No writ matches.\n' })
    expect(mistyped.err).toContain('Did you mean "stuck"?')
    expect((await millrace(['writs', '--phase', 'failed', ...address])).err).toBe('')
    expect((await millrace(['writ', part.id, ...address])).out).toContain('stuck')
    expect((await millrace(['writ', 'w-none', ...address])).code).toBe(1)
    expect((await millrace(['rig', 'rig-none', ...address])).code).toBe(1)
  })

  it('has its stuck writs retried and cancelled by a person, whose name and reason are stored', async () => {
    const file = join(folder, 'acts.sqlite')
    const guild = await createGuild({
      config: { plugins: ['stacks', 'clerk'], stacks: { file } },
    })
    const clerk = guild.apparatus<ClerkApi>('clerk')
    const rye = await clerk.post({ title: 'rye', body: '' })
    const draft = await clerk.post({ title: 'draft', body: '', draft: true })
    await clerk.transition(rye.id, 'stuck', { resolution: 'the oven is cold' })
    const address = ['--backend', `sqlite:${file}`]
    const run = (...args: string[]) => millrace([...args, ...address])

    expect((await run('overview')).out).toContain('1 stuck: millrace writs --phase stuck')
    expect((await run('writ', rye.id)).out).toContain(`millrace writ retry ${rye.id} --backend`)
    expect((await run('writ', draft.id)).out).toContain(`millrace writ open ${draft.id} --backend`)
    // A guild that runs at the same time keeps running, and sees it.
    expect(await run('writ', 'retry', rye.id, '--who', 'ada', '--why', 'it is hot')).toMatchObject({
      code: 0,
      out: `Retries ${rye.id} (rye): it is open.\n`,
    })
    expect((await clerk.show(rye.id)).phase).toBe('open')
    expect(await run('writ', 'retry', rye.id)).toMatchObject({ code: 1, err: expect.stringContaining('is open') })
    expect(await run('writ', 'cancel', rye.id)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await run('writ', 'cancel', rye.id, '--yes', '--json')).toMatchObject({ code: 0 })
    expect((await clerk.show(rye.id)).phase).toBe('cancelled')
    expect(await run('writ', 'opne', rye.id)).toMatchObject({ code: 2, err: expect.stringContaining('"open"') })
    expect(await run('writ', 'retry')).toMatchObject({ code: 2, err: expect.stringContaining('Which writ?') })
    const { out } = await run('log')
    expect(out).toMatch(/retry writ w-.* \(stuck → open\) +ada +it is hot/)
    expect((await run('writ', rye.id)).out).toContain('What people did')
    await guild.shutdown()
  })
})

describe('the demonstration', () => {
  it('tells its story, ends and leaves nothing behind', async () => {
    const { code, out, err } = await millrace(['demo'], { TMPDIR: folder })
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('$ millrace redrive label/o-2')
    expect(out).toContain('Redrove 1 item.')
    expect(out).toMatch(/done +label\/o-2/)
    expect(spawnSync('ls', [folder], { encoding: 'utf8' }).stdout).not.toContain('millrace-demo')
  })
})

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGuild } from 'millrace/guild'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'

let home: string
const config = () => JSON.parse(readFileSync(join(home, 'guild.json'), 'utf8')) as Record<string, unknown>
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-config-lock-'))
  writeFileSync(join(home, 'guild.json'), '{"name": "kept"}')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
})

// W17
it('no process loses what it wrote to guild.json, however many write at the same time', async () => {
  const TIMES = 40
  const writers = ['a', 'b', 'c'].map((id) => {
    const child = spawn(process.execPath, ['test/guild/host/processes/config-writer.mjs', home, id, String(TIMES)])
    return { child, ready: new Promise((resolve) => child.stdout.once('data', resolve)), ended: endOf(child) }
  })
  await Promise.all(writers.map(({ ready, ended }) => Promise.race([ready, ended])))
  for (const { child } of writers) child.stdin.write('go')

  expect(await Promise.all(writers.map(({ ended }) => ended))).toEqual(writers.map(() => ({ code: 0, errors: '' })))
  expect(config()).toEqual({ name: 'kept', a: { n: TIMES }, b: { n: TIMES }, c: { n: TIMES } })
  expect(readdirSync(home)).toEqual(['guild.json'])
})

describe('a lock of guild.json', () => {
  const deadPid = () => spawnSync(process.execPath, ['-e', '']).pid
  it.each([
    { whose: 'a process that died', holder: () => `${deadPid()} ${hostname()} token`, ageMs: 0 },
    { whose: 'another machine, long ago', holder: () => '1 elsewhere token', ageMs: 60_000 },
    { whose: 'an unknown process, because its maker died before it wrote its name', holder: () => '', ageMs: 60_000 },
  ])('of $whose keeps no process from writing', async ({ holder, ageMs }) => {
    const g = await createGuild({ root: home, plugins: [{ package: 'k-kit', plugin: { kit: {} } }] })
    const lock = join(home, 'guild.json.lock')
    writeFileSync(lock, holder())
    const then = new Date(Date.now() - ageMs)
    utimesSync(lock, then, then)

    g.writeConfig('k', { x: 1 })

    expect(config()).toEqual({ name: 'kept', k: { x: 1 } })
    expect(readdirSync(home)).toEqual(['guild.json'])
    await g.shutdown()
  })
})

async function endOf(child: ChildProcess): Promise<{ code: number | null; errors: string }> {
  let errors = ''
  child.stderr?.on('data', (chunk) => {
    errors += chunk
  })
  return { code: await new Promise((resolve) => child.once('close', resolve)), errors }
}

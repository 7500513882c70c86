import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WritDoc } from 'millrace/guild/clerk'
import { openStacks, sqliteStacks } from 'millrace/guild/stacks'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-kept-alive-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function place(name: string) {
  const [documents, work, log] = ['stacks', 'work', 'log'].map((part) => join(folder, `${name}.${part}`)) as [
    string,
    string,
    string,
  ]
  const worker = (runMs: number, keepAlive: boolean): ChildProcess => {
    const file = 'test/guild/spider/processes/worker.mjs'
    const child = spawn(process.execPath, [file, documents, work, log, String(runMs), String(keepAlive)], {
      // One that ends with nothing done says so.
      stdio: ['ignore', 'ignore', keepAlive ? 'inherit' : 'ignore'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const runs = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0)
  return { documents, worker, runs }
}

const ended = (child: ChildProcess) =>
  new Promise<string>((resolve) => child.once('exit', (code, signal) => resolve(`${signal ?? code}`)))

it('a worker that comes after one that was killed stays until it has run what that one left, and after', async () => {
  const { documents, worker, runs } = place('killed')
  const first = worker(60_000, true)
  await expect.poll(runs, { timeout: 60_000, interval: 50 }).toBe(1)
  const gone = ended(first)
  first.kill('SIGKILL')
  await gone
  const second = worker(0, true)
  let exit: string | undefined
  void ended(second).then((how) => {
    exit = how
  })
  const stacks = await openStacks({ backend: sqliteStacks({ file: documents }) })
  onTestFinished(() => stacks.close())
  const writs = stacks.readBook<WritDoc>('clerk', 'writs')
  await expect
    .poll(async () => exit ?? (await writs.list()).map(({ phase }) => phase).join(), { timeout: 60_000, interval: 50 })
    .toBe('completed')
  expect(runs()).toBe(2)
  // It waits for what others post: a second is longer than any timer of ours would keep it by accident.
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(exit).toBeUndefined()
}, 120_000)

it('a worker that is not to stay ends when it has nothing to do', async () => {
  const { worker, runs } = place('idle')
  expect(await ended(worker(0, false))).toBe('0')
  expect(runs()).toBeLessThanOrEqual(1)
}, 60_000)

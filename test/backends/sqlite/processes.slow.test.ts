import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { SqliteBackend } from '../../../src/backends/sqlite/index.js'
import { ask, enqueue, finish, item, times } from '../settlements.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const program = fileURLToPath(new URL('drain.child.ts', import.meta.url))

interface Deed {
  readonly done: string
  readonly closed: readonly string[]
}

const running = new Set<ChildProcess>()
const opened: SqliteBackend[] = []
afterEach(async () => {
  for (const child of running) child.kill('SIGKILL')
  for (const backend of opened.splice(0)) await backend.close()
})

/** A worker process, and what it has said so far. */
function worker(name: string, file: string, ...more: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', program, file, name, ...more], { stdio: 'pipe' })
  running.add(child)
  let said = ''
  let complained = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    complained += chunk.toString()
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    running.delete(child)
    return { code, signal, complained }
  })
  return {
    child,
    ended,
    // The last line of one that was killed may be cut off.
    deeds: () =>
      said
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Deed),
  }
}

function open(file: string) {
  const backend = openFile({ file })
  opened.push(backend)
  return ledgerOn(backend)
}

const summed = (workers: readonly { deeds(): Deed[] }[]) => {
  const deeds = workers.flatMap((one) => one.deeds())
  return { done: deeds.map(({ done }) => done), closed: deeds.flatMap(({ closed }) => closed) }
}

describe('several processes on one SQLite file', () => {
  it('share the items out without overlap, and close every group once', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    const roots = times(300, (i) => `r${i}`)
    await ledger.commit(roots.map((id) => enqueue(item(id))))
    await ledger.commit(times(60, (i) => enqueue(item(`s${i}`, { groupId: `shared${i % 3}`, parent: 'none' }))))

    const workers = ['w1', 'w2', 'w3'].map((name) => worker(name, file))
    for (const { ended } of workers) expect(await ended).toMatchObject({ code: 0, complained: '' })

    const { done, closed } = summed(workers)
    expect(done.length).toBe(3 * 300 + 60)
    expect(new Set(done).size).toBe(done.length)
    expect(closed.toSorted()).toEqual([...roots, 'shared0', 'shared1', 'shared2'].toSorted())
    expect((await ledger.groups(['r7', 'shared1'])).map((group) => [group?.open, group?.version])).toEqual([
      [0, 3],
      [0, 20],
    ])
  })

  it('lose and double nothing when they are killed between two writes', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    const roots = times(400, (i) => `r${i}`)
    await ledger.commit(roots.map((id) => enqueue(item(id))))

    // Leases short enough that the survivors take over what the dead held within the test.
    const dead: ReturnType<typeof worker>[] = []
    for (let round = 0; round < 4; round += 1) {
      const victim = worker(`victim ${round}`, file, '400')
      while (victim.deeds().length < 60) await wait(5)
      victim.child.kill('SIGKILL')
      expect((await victim.ended).signal).toBe('SIGKILL')
      dead.push(victim)
    }
    const survivor = worker('survivor', file, '400', '60')
    expect(await survivor.ended).toMatchObject({ code: 0, complained: '' })

    const all = roots.flatMap((id) => [id, `${id}-x`, `${id}-y`])
    const views = await ledger.read(all)
    expect(views.filter((view) => view?.status !== 'success')).toEqual([])
    // What a victim committed and could not say any more is not in its report; nothing is in two reports.
    const { done, closed } = summed([...dead, survivor])
    expect(new Set(done).size).toBe(done.length)
    expect(new Set(closed).size).toBe(closed.length)
    const groups = await ledger.groups(roots)
    expect(groups.filter((group) => group?.open !== 0 || group.version !== 3)).toEqual([])
  })

  it('wake each other, and tell each other what has ended', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    const heard: string[] = []
    ledger.onInbox('me', ({ ids }) => void heard.push(...ids))
    const woken = new Promise<string>((resolve) => ledger.onReady(resolve))
    await ledger.claim(ask(1))
    await ledger.commit([enqueue(item('root', { waiter: 'me', groupId: 'root' }))])
    const [root] = (await ledger.claim(ask(1))).items
    await ledger.commit([finish(root!)])
    heard.length = 0

    // Another process runs a root that waits for nobody here, and its children wake us.
    await ledger.commit([enqueue(item('theirs', { waiter: 'me' }))])
    const other = worker('other', file)
    expect((await other.ended).code).toBe(0)
    const until = performance.now() + 5_000
    while (!heard.includes('theirs') && performance.now() < until) await wait(5)

    expect(await woken).toBe('default')
    expect(heard).toContain('theirs')
  })
})

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { SqliteBackend } from '../../../src/backends/sqlite/index.js'
import type { ClaimedItem } from '../../../src/ports/item.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ask, enqueue, finish, item, times } from '../settlements.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const drains = fileURLToPath(new URL('drain.child.ts', import.meta.url))
const holds = fileURLToPath(new URL('hold.child.ts', import.meta.url))

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

/** A worker process that does what it finds. */
const worker = (name: string, file: string, ...more: readonly string[]) => start<Deed>(drains, file, name, ...more)

/** A process, and what it has said so far. */
function start<T>(program: string, ...words: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...words], { stdio: 'pipe' })
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
        .map((line) => JSON.parse(line) as T),
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
    expect(views.filter((view) => view?.status !== 'completed')).toEqual([])
    // What a victim committed and could not say any more is not in its report; nothing is in two reports.
    const { done, closed } = summed([...dead, survivor])
    expect(new Set(done).size).toBe(done.length)
    expect(new Set(closed).size).toBe(closed.length)
    const groups = await ledger.groups(roots)
    expect(groups.filter((group) => group?.open !== 0 || group.version !== 3)).toEqual([])
  })

  it('wake each other, and notify each other of what has ended', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    const received: string[] = []
    ledger.onInbox('me', ({ itemIds }) => void received.push(...itemIds))
    const woken = new Promise<string>((resolve) => ledger.onReady(resolve))
    await ledger.claim(ask(1))
    await ledger.commit([enqueue(item('root', { waiter: 'me', groupId: 'root' }))])
    const [root] = (await ledger.claim(ask(1))).items
    await ledger.commit([finish(root!)])
    received.length = 0

    // Another process runs a root that no caller here waits for, and its children wake us.
    await ledger.commit([enqueue(item('theirs', { waiter: 'me' }))])
    const other = worker('other', file)
    expect((await other.ended).code).toBe(0)
    const until = performance.now() + 5_000
    while (!received.includes('theirs') && performance.now() < until) await wait(5)

    expect(await woken).toBe('default')
    expect(received).toContain('theirs')
  })
})

describe('the leases of several processes on one SQLite file', () => {
  // Long enough that a busy machine does not miss all eight heartbeats within one.
  const LEASE_MS = 2_000
  const claimOne = async (ledger: Ledger) => (await ledger.claim(ask(1, { worker: 'here', leaseMs: 60_000 }))).items[0]

  it('hold against a process that is much older, and end for it when their process has died', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    await ledger.commit([enqueue(item('a'))])
    const holder = start<{ readonly said: string }>(holds, file, 'holder', String(LEASE_MS))
    while (holder.deeds().length === 0) await wait(5)

    const until = performance.now() + 2 * LEASE_MS
    while (performance.now() < until) {
      expect(await claimOne(ledger)).toBeUndefined()
      await wait(20)
    }
    const [view] = await ledger.read(['a'])
    expect(view).toMatchObject({ status: 'running', worker: 'holder' })
    expect(view!.leaseUntil! - Date.now()).toBeLessThanOrEqual(LEASE_MS + 5)
    expect(view!.leaseUntil! - Date.now()).toBeGreaterThan(0)

    holder.child.kill('SIGKILL')
    expect(await holder.ended).toMatchObject({ signal: 'SIGKILL', complained: '' })
    expect(new Set(holder.deeds().map(({ said }) => said))).toEqual(new Set(['held']))
    const killedAt = performance.now()
    let again: ClaimedItem | undefined
    while (again === undefined && performance.now() < killedAt + 10 * LEASE_MS) {
      await wait(5)
      again = await claimOne(ledger)
    }
    expect(again).toMatchObject({ lease: { id: 'a' }, lapses: 1, crashes: 1 })
    expect(performance.now() - killedAt).toBeLessThan(3 * LEASE_MS)
  })

  it('end for a process that has only just begun, no later than for their own', async () => {
    const file = temporaryFile()
    const ledger = open(file)
    await ledger.commit([enqueue(item('a', { parent: 'none' }))])
    // It sends nothing more.
    const { items } = await ledger.claim(ask(1, { leaseMs: LEASE_MS }))
    expect(items).toHaveLength(1)

    // It polls for four seconds.
    const other = worker('other', file, '30000', '200')
    expect(await other.ended).toMatchObject({ code: 0, complained: '' })

    expect(other.deeds().map(({ done }) => done)).toEqual(['a'])
    expect((await ledger.commit([finish(items[0]!)]))[0]).toEqual({ kind: 'stale' })
  })
})

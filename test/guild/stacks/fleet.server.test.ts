import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataPlace } from '../../servers/data-place.js'
import { startPostgres } from '../../servers/index.js'
import { output, ready, start } from './processes/run.js'
import { storeAt } from './processes/store.js'

// Real processes and real kills: time is real here. `MILLRACE_FLEET_MS=60000` makes every part last a minute.
const MS = Number(process.env['MILLRACE_FLEET_MS'] ?? 2_000)
/** How long a fleet may take with what it was given, on a machine that others use, too. */
const PATIENCE_MS = 120_000
const PROCESSES = 8
const ACCOUNTS = 10

let server: Awaited<ReturnType<typeof startPostgres>>
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  folder = mkdtempSync(join(dataPlace(), 'millrace-fleet-'))
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

describe.each([
  { name: 'SQLite', address: () => join(folder, 'fleet.sqlite') },
  { name: 'PostgreSQL', address: () => server.url },
])('processes on one $name', ({ name, address }) => {
  it(
    'eight of them move money in transactions: the sum is exact, nothing dirty is read, no update is lost',
    async () => {
      const stacks = await storeAt(address())
      await stacks.declare('bank', { accounts: {}, log: {} })
      const book = stacks.book<{ id: string; balance: number }>('bank', 'accounts')
      for (let n = 0; n < ACCOUNTS; n += 1) await book.put({ id: String(n), balance: 100 })

      const children = Array.from({ length: PROCESSES }, () =>
        start('transfer', address(), String(ACCOUNTS), String(MS)),
      )
      const delivered = (await Promise.all(children.map(output))).map(
        (text) => JSON.parse(text) as { moved: number; undone: number; sums: number; wrong: number },
      )

      const total = { moved: 0, undone: 0, sums: 0, wrong: 0 }
      for (const one of delivered)
        for (const key of ['moved', 'undone', 'sums', 'wrong'] as const) total[key] += one[key]
      const moves = await stacks.book<{ id: string; from: string; to: string; amount: number }>('bank', 'log').list()
      // What the log says happened must be exactly what the balances show: a lost update would part them.
      const expected = new Map(Array.from({ length: ACCOUNTS }, (_, n) => [String(n), 100]))
      for (const { from, to, amount } of moves) {
        expected.set(from, expected.get(from)! - amount)
        expected.set(to, expected.get(to)! + amount)
      }
      const found = new Map((await book.list()).map(({ id, balance }) => [id, balance]))
      await stacks.close()
      console.log(`${name}: ${JSON.stringify(total)} by ${PROCESSES} processes in ${MS} ms`)
      expect(found).toEqual(expected)
      expect(moves.length).toBe(total.moved)
      expect(total.wrong).toBe(0)
      expect(total.moved).toBeGreaterThan(PROCESSES)
      expect(total.undone).toBeGreaterThan(0)
    },
    PATIENCE_MS + 3 * MS,
  )

  it(
    'two of them handle a durable watcher, one killed every second: each event at least once, in commit order',
    async () => {
      const file = join(folder, `${name}.log`)
      const stacks = await storeAt(address())
      await stacks.declare('shop', { orders: {} })
      // Registered by a process of the fleet, before anything is written.
      const fleet: ChildProcess[] = [start('listener', address(), file), start('listener', address(), file)]
      await Promise.all(fleet.map(ready))

      // One writer, so that the order of its writes is the order of commits.
      const written: string[] = []
      const until = Date.now() + MS
      let nextKill = Date.now() + 1_000
      let kills = 0
      const dead: ChildProcess[] = []
      while (Date.now() < until || kills < 2) {
        const id = `o-${written.length}`
        await stacks.book<{ id: string; n: number }>('shop', 'orders').put({ id, n: written.length })
        written.push(id)
        if (Date.now() < nextKill) continue
        nextKill = Date.now() + 1_000
        kills += 1
        const victim = fleet.shift()!
        dead.push(victim)
        victim.kill('SIGKILL')
        fleet.push(start('listener', address(), file))
      }
      const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [])
      const handled = () => new Set(lines().map((line) => line.split(' ')[1]))
      const patience = Date.now() + PATIENCE_MS
      while (handled().size < written.length && Date.now() < patience)
        await new Promise((resolve) => setTimeout(resolve, 50))
      for (const child of fleet) child.kill('SIGKILL')
      await stacks.close()

      // The first delivery of each event, in the order of the file.
      const first = [...handled()]
      const delivered = lines().length
      console.log(`${name}: ${written.length} events delivered ${delivered} times, ${kills} kills in ${MS} ms`)
      expect(first).toEqual(written)
      // Within what one process received there is no step back either.
      const perProcess = grouped(lines())
      for (const numbers of perProcess.values()) expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      expect(kills).toBeGreaterThanOrEqual(2)
    },
    2 * PATIENCE_MS + 3 * MS,
  )

  it(
    'three of them write while two handle a durable watcher, and both kinds are killed: no version is missing or early',
    async () => {
      const file = join(folder, `${name}-versions.log`)
      const stacks = await storeAt(address())
      await stacks.declare('shop', { orders: {} })
      const writer = () => start('versions', address(), '200')
      const listener = () => start('listener', address(), file)
      const listeners = [listener(), listener()]
      await Promise.all(listeners.map(ready))
      const writers = [writer(), writer(), writer()]
      await Promise.all(writers.map(ready))
      const written = () =>
        stacks.book<{ id: string; n: number }>('shop', 'orders').find({ where: [['id', 'LIKE', 'v-%']] })
      const begun = Date.now()
      let kills = 0
      // A busy machine needs longer to write enough.
      while (Date.now() - begun < MS || kills < 4 || (await written()).reduce((sum, { n }) => sum + n, 0) <= 50) {
        await new Promise((resolve) => setTimeout(resolve, 500))
        const [group, next] = kills % 2 === 0 ? [writers, writer] : [listeners, listener]
        group.shift()!.kill('SIGKILL')
        group.push(next())
        kills += 1
      }
      const ended = writers.map((child) => new Promise((resolve) => child.once('close', resolve)))
      for (const child of writers) child.kill('SIGKILL')
      await Promise.all(ended)

      // Each document's versions are 1, 2, 3 …: what the store holds now says which events there were.
      const found = await written()
      const expected = new Map(found.map(({ id, n }) => [id, Array.from({ length: n }, (_, i) => i + 1)]))
      const delivered = () => {
        const seen = new Map<string, Set<number>>()
        for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []) {
          const [, id = '', n] = line.split(' ')
          if (id.startsWith('v-')) seen.set(id, (seen.get(id) ?? new Set()).add(Number(n)))
        }
        return new Map([...seen].map(([id, versions]) => [id, [...versions]]))
      }
      const count = (versions: ReadonlyMap<string, readonly number[]>) => [...versions.values()].flat().length
      const isDelivered = async () => (await stacks.watchers()).every(({ behind }) => behind === 0)
      const patience = Date.now() + PATIENCE_MS
      while (!(await isDelivered()) && Date.now() < patience) await new Promise((resolve) => setTimeout(resolve, 50))
      for (const child of listeners) child.kill('SIGKILL')
      await stacks.close()
      console.log(`${name}: ${count(expected)} versions of ${expected.size} documents, ${kills} kills`)
      // In the order of first deliveries, which is the order of commits.
      expect(delivered()).toEqual(new Map([...delivered().keys()].map((id) => [id, expected.get(id)])))
      expect(count(delivered())).toBe(count(expected))
    },
    2 * PATIENCE_MS + 3 * MS,
  )
})

function grouped(lines: readonly string[]): Map<string, number[]> {
  const groups = new Map<string, number[]>()
  for (const line of lines) {
    const [pid = '', , n] = line.split(' ')
    groups.set(pid, [...(groups.get(pid) ?? []), Number(n)])
  }
  return groups
}

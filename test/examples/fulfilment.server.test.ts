import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { memoryBackend } from 'millrace'
import { openStacks, postgresStacks, type Stacks, sqliteStacks } from 'millrace/guild/stacks'
import { openOps } from 'millrace/ops'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Entry, Outside } from '../../examples/fulfilment/outside.js'
import { openShop } from '../../examples/fulfilment/shop.js'
import { root } from '../../scripts/lib/root.mjs'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'
import { startPostgres } from '../servers/index.js'

// Real processes and real kills of the example as users would write it; what it did is counted in the log of the world outside.
const KILLS = 3
/** How long a service takes: long enough to be killed in the middle. */
const TAKES_MS = 200
/** How long a killed process keeps its steps. */
const VISIBILITY_MS = 3_000
/** Nothing at all has happened for so long: it hangs. */
const HANGS_MS = 90_000

/** As `examples/fulfilment` has it. */
const RIGS_AT_MOST = 4
const SMOOTH = 9
const orders = [
  ...Array.from({ length: SMOOTH }, (_, n) => ({ orderId: `smooth-${n}` })),
  { orderId: 'jam-0', trouble: 'jam' },
  { orderId: 'jam-1', trouble: 'jam' },
  { orderId: 'declined', trouble: 'declined' },
  { orderId: 'no-paper', trouble: 'no paper' },
]

const PORTIONS = Array.from({ length: KILLS + 1 }, (_, n) => orders.filter((_order, at) => at % (KILLS + 1) === n))

describe('the quick story of the fulfilment guild', () => {
  it('ends with every order done once, after a person has retried the one that was stuck', () => {
    const { command, args, env } = typescriptProgram('examples/fulfilment.ts')
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8', timeout: 60_000 })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/Order o-2 is completed after 2 of at most 4 rigs\n/)
    expect(stdout).toMatch(/Order o-3 is stuck after 1 of at most 4 rigs: the card was declined\n/)
    expect(stdout).toMatch(/Order o-3 is completed\nada: retry writ w-… \(stuck → open\)/)
    expect(stdout).toMatch(/bank: 3 for 3 orders\nprinter: 3 for 3 orders\ncarrier: 3 for 3 orders\n$/)
  })
})

let server: Awaited<ReturnType<typeof startPostgres>> | undefined
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-fulfilment-'))
  server = await startPostgres()
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe.each([
  { name: 'one worker on SQLite', size: 1, address: () => join(folder, 'shop.db') },
  { name: 'two workers on PostgreSQL', size: 2, address: () => server?.url ?? '' },
])('the fulfilment guild, $name, killed again and again', { concurrent: true }, ({ size, address }) => {
  it('does everything once, and ends every order, or leaves it stuck with its true reason', async () => {
    const outside = join(folder, `outside-${size}`)
    const world = new Outside(outside)
    const workers = new Workers([address(), outside, String(TAKES_MS), String(VISIBILITY_MS)], size)
    try {
      await workers.ready()
      // The first portion is posted by a process of its own, as by a web server; one more follows each kill, so that there is always
      // something to interrupt.
      const ids = await postedBy(address(), PORTIONS[0] ?? [])
      const shop = await openShop(address())
      const post = async (order: (typeof orders)[number]) => {
        const { orderId } = order
        ids.set(orderId, (await shop.post({ type: 'order', title: orderId, body: JSON.stringify(order) })).id)
      }
      const stacks = await openStacks({ backend: stacksOf(address()) })
      const ops = openOps(memoryBackend(), { stacks })
      await untilOver(stacks, world, workers, post)
      await shop.close()
      expect(ids.size).toBe(orders.length)

      const entries = world.entries()
      const doneOf = (id: string) =>
        entries.filter(({ what, key }) => what === 'done' && key.startsWith(`${id}/`)).map(({ service }) => service)
      for (const { orderId } of orders) {
        const id = ids.get(orderId) ?? ''
        const writ = await ops.writ(id)
        const [phase, reasons] = [writ?.phase, writ?.reasons ?? []]
        if (orderId === 'declined') {
          expect([phase, writ?.resolution, doneOf(id)]).toEqual(['stuck', 'the card was declined', []])
          expect(reasons).toMatchObject([{ code: 'stuck-for-good' }])
        } else if (orderId === 'no-paper') {
          // Charged once, although each of its four rigs asked the bank.
          expect([phase, writ?.resolution, doneOf(id)]).toEqual(['stuck', 'the printer is out of paper', ['bank']])
          expect(reasons).toMatchObject([{ code: 'stuck-at-cap' }])
          expect(writ?.rigs).toHaveLength(RIGS_AT_MOST)
        } else {
          expect([orderId, phase, doneOf(id)]).toEqual([orderId, 'completed', ['bank', 'printer', 'carrier']])
        }
      }
      expect(workers.killed.size).toBe(KILLS)
      // The kills hit something: calls that were never answered, because their caller was gone.
      const unanswered = openCallsOf(entries).filter(({ pid }) => workers.killed.has(pid))
      expect(unanswered.length).toBeGreaterThan(0)
      console.log(
        `${size} workers: ${workers.killed.size} kills, ${unanswered.length} calls cut off, ` +
          `${entries.filter(({ what }) => what === 'asked').length} asked, ${entries.filter(({ what }) => what === 'done').length} done`,
      )
      await stacks.close()
    } finally {
      await workers.stop()
    }
  })
})

/** Posts the orders from a process of its own, as a web server would, and returns the ids of their writs. */
async function postedBy(address: string, portion: readonly unknown[]): Promise<Map<string, string>> {
  const { command, args, env } = typescriptProgram('examples/fulfilment/web.ts', [address, JSON.stringify(portion)])
  const { stdout } = await promisify(execFile)(command, args, { cwd: root, env })
  return new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  )
}

/** Kills a worker in the middle of a call, again and again, until every order has come to rest. */
async function untilOver(
  stacks: Stacks,
  world: Outside,
  workers: Workers,
  post: (order: (typeof orders)[number]) => Promise<void>,
): Promise<void> {
  const writs = stacks.readBook<{ id: string; phase: string; status?: { spider?: { retryable?: boolean } } }>(
    'clerk',
    'writs',
  )
  const rigs = stacks.readBook<{ id: string; status: string; writId: string }>('spider', 'rigs')
  /** One that may have another rig is stuck for a moment only, until it is opened again. */
  const staysStuck = async ({ id, status }: { id: string; status?: { spider?: { retryable?: boolean } } }) =>
    status?.spider?.retryable !== true || (await rigs.count([['writId', '=', id]])) === RIGS_AT_MOST
  let [seen, movedAt, killFrom] = ['', Date.now(), 1]
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (workers.fallen !== undefined) throw new Error(`A worker ended by itself: ${workers.fallen}`)
    const entries = world.entries()
    const ended = await writs.count([['phase', 'IN', ['completed', 'stuck']]])
    const going = await rigs.count([['status', 'IN', ['running', 'blocked']]])
    const stuck = await writs.find({ where: [['phase', '=', 'stuck']] })
    const stays = await Promise.all(stuck.map(staysStuck))
    const isOver = ended === orders.length && going === 0 && stuck.length === 2 && stays.every((stay) => stay)
    if (isOver && workers.killed.size === KILLS) return
    const now = `${ended} ${going} ${entries.length}`
    if (now !== seen) [seen, movedAt] = [now, Date.now()]
    if (Date.now() - movedAt > HANGS_MS)
      throw new Error(`Nothing has moved for ${HANGS_MS} ms: ${now}, ${workers.killed.size} kills. ${workers.errors}`)
    const done = entries.filter(({ what }) => what === 'done').length
    if (workers.killed.size === KILLS || done < killFrom) continue
    const victim = openCallsOf(entries).find(({ pid }) => workers.isAlive(pid))
    if (victim === undefined) continue
    await workers.kill(victim.pid)
    // Something has to be done between two kills, so that no step meets all of them.
    killFrom = done + 6
    for (const order of PORTIONS[workers.killed.size] ?? []) await post(order)
  }
}

/** Calls that were begun and not answered. */
function openCallsOf(entries: readonly Entry[]): Entry[] {
  const open = new Map<string, Entry>()
  for (const entry of entries) {
    const call = `${entry.pid} ${entry.service} ${entry.key}`
    if (entry.what === 'asked') open.set(call, entry)
    if (entry.what === 'answered') open.delete(call)
  }
  return [...open.values()]
}

const stacksOf = (address: string) =>
  address.startsWith('postgres')
    ? postgresStacks({ connectionString: address, migrate: false, maxConnections: 3 })
    : sqliteStacks({ file: address, migrate: false })

/** Workers as processes; one that was killed is replaced. */
class Workers {
  readonly killed = new Set<number>()
  fallen: string | undefined
  errors = ''
  readonly #args: readonly string[]
  readonly #alive = new Map<number, ChildProcess>()
  readonly #ready: Promise<void>[] = []
  #isStopping = false

  constructor(args: readonly string[], size: number) {
    this.#args = args
    for (let n = 0; n < size; n += 1) this.#start()
  }

  async ready(): Promise<void> {
    await Promise.all(this.#ready)
  }

  isAlive(pid: number): boolean {
    return this.#alive.has(pid)
  }

  async kill(pid: number): Promise<void> {
    const child = this.#alive.get(pid)
    if (child === undefined) return
    this.killed.add(pid)
    await end(child, 'SIGKILL')
    this.#start()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    for (const child of this.#alive.values()) await end(child, 'SIGTERM')
  }

  #start(): void {
    const { command, args, env } = typescriptProgram('examples/fulfilment/worker.ts', this.#args)
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const pid = child.pid ?? 0
    this.#alive.set(pid, child)
    child.stderr.on('data', (data) => {
      this.errors = `${this.errors}${String(data)}`.slice(-3_000)
    })
    child.once('exit', (code) => {
      this.#alive.delete(pid)
      if (!this.#isStopping && !this.killed.has(pid)) this.fallen = `exit code ${code}. ${this.errors}`
    })
    this.#ready.push(
      new Promise((resolve, reject) => {
        child.stdout.once('data', () => resolve())
        child.once('exit', () => reject(new Error(`A worker ended before it was ready. ${this.errors}`)))
      }),
    )
    this.#ready.at(-1)?.catch(() => undefined)
  }
}

function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill(signal)
  })
}

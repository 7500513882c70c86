import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Backend } from '../../src/ports/ports.js'
import { startPostgres, startRedis } from '../servers/index.js'
import type { PrivateServer } from '../servers/private-server.js'
import { backendOf } from './backend-of.mjs'
import { check, hasDrained, type Verdict } from './check.js'
import { doFaults } from './faults.js'
import { Fleet, PATIENCE_MS } from './fleet.js'
import { machineNow } from './machine-time.mjs'
import type { ChaosOptions, Fault } from './options.js'
import { askerOf, watchServer } from './server-stalls.js'
import { SmallDisk } from './small-disk.js'
import { Timeline } from './timeline.js'
import { type Accepted, type Truth, truthIn } from './truth.js'
import { watchWriteLock } from './write-lock.js'

export interface ChaosReport extends Verdict {
  readonly accepted: number
  /** Sent, and not known to be accepted: they may or may not exist. */
  readonly unsure: number
  /** Lost, and accepted within what `everysec` may lose before a kill of the server. */
  readonly lostAsPromised: number
  /** How often each kind of fault was done. */
  readonly faults: Readonly<Record<Fault, number>>
  /** How often the write lock of SQLite was held for more than a quarter of a lease, which stops the heartbeats of all. */
  readonly longWriteLocks: number
  /** How often the server took more than a quarter of a lease to write next to nothing, which stops the heartbeats of all. */
  readonly serverStalls: number
  /** How long it took, after the last fault, until everything had ended. */
  readonly drainMs: number
  /** Processes that did not exit with 0 after SIGTERM, with their last output. */
  readonly badExits: readonly string[]
  /** Processes that ended without being killed, with their last output. */
  readonly endedUnasked: readonly string[]
}

/**
 * A fleet of real processes on a real server, to which everything is done that happens to such fleets. What was accepted and what
 * ran is written down by the processes themselves, outside of Millrace, and compared at the end.
 */
export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const server = await serverFor(options)
  const disk = server === undefined ? diskIn(dir, options) : undefined
  const file = disk?.database ?? join(dir, 'millrace.db')
  const address = server?.url ?? `sqlite:${file}`
  const timeline = new Timeline()
  const fleet = new Fleet(dir, address, options, timeline)
  const ownStalls = watchOwnStalls(timeline, options.leaseMs)
  let writeLock: { close(): void } | undefined
  const asker = server === undefined ? undefined : askerOf(server.url)
  const serverStalls = asker === undefined ? undefined : watchServer(asker.ask, timeline, options.leaseMs)
  try {
    await fleet.start()
    if (server === undefined) writeLock = watchWriteLock(file, timeline, options.leaseMs)
    const done = await doFaults({ options, fleet, timeline, server, disk })
    await fleet.end('producer', 'locker')
    const faultsOverMs = performance.now()
    options.say?.('no more faults; waiting for everything to end')
    // They end when they have the outcome of everything that they wait for.
    await fleet.end('waiter')
    const backend = await backendOf(address)
    try {
      await drained(backend, dir, faultsOverMs + PATIENCE_MS)
      const drainMs = Math.round(performance.now() - faultsOverMs)
      await fleet.end('worker')
      const truth = truthIn(dir)
      for (const { by, from, to } of truth.stalls) timeline.add({ who: by, kind: 'stall', from, to })
      const verdict = await check(backend, truth, timeline, options.leaseMs)
      const mayBeLost = options.appendfsync === 'everysec' ? lostBefore(done.serverKilledAt, truth.accepted) : new Set()
      return {
        ...verdict,
        // With `everysec` an outcome that a waiter has got may be lost, and another one take its place.
        wrongOutcomes: options.appendfsync === 'everysec' ? [] : verdict.wrongOutcomes,
        unfinished: verdict.unfinished.filter(({ root }) => !mayBeLost.has(root)),
        lostAsPromised: new Set(verdict.unfinished.flatMap(({ root }) => (mayBeLost.has(root) ? [root] : []))).size,
        accepted: truth.accepted.length,
        unsure: truth.unsure.length,
        faults: { ...done.counts, ...countedElsewhere(truth, timeline) },
        longWriteLocks: timeline.count('lock'),
        serverStalls: timeline.count('server'),
        drainMs,
        badExits: fleet.badExits,
        endedUnasked: fleet.endedUnasked,
      }
    } finally {
      await backend.close()
    }
  } finally {
    clearInterval(ownStalls)
    writeLock?.close()
    serverStalls?.close()
    asker?.end()
    await fleet.kill()
    await server?.stop()
    const isKept = process.env['MILLRACE_CHAOS_KEEP'] !== undefined
    if (isKept) {
      disk?.full.keep()
      options.say?.(`kept in ${dir}`)
    } else {
      disk?.full.close()
      rmSync(dir, { recursive: true, force: true })
    }
  }
}

function serverFor({ backend, appendfsync = 'always' }: ChaosOptions): Promise<PrivateServer | undefined> {
  switch (backend) {
    case 'sqlite':
      return Promise.resolve(undefined)
    case 'postgres':
      return startPostgres()
    case 'redis':
      return startRedis({ appendonly: true, appendfsync })
  }
}

function diskIn(dir: string, { everyMs, say }: ChaosOptions) {
  if (everyMs.disk === undefined) return undefined
  const full = SmallDisk.open(join(dir, 'disk'))
  if (full === undefined) say?.('this user may not mount a small disk: it will not be full')
  return full && { full, database: join(dir, 'disk', 'millrace.db') }
}

/** Waits until everything has ended, at most until then. */
async function drained(backend: Backend, dir: string, untilMs: number): Promise<void> {
  for (;;) {
    // Read anew only when all of the old has ended: a run that counts may have written of new children meanwhile.
    const truth = truthIn(dir)
    while (!(await hasDrained(backend, truth))) {
      if (performance.now() > untilMs) return
      await sleep(200)
    }
    if (truthIn(dir).minted.length === truth.minted.length) return
  }
}

/** All connections lead through this process: when it stands still, all others are cut off. */
function watchOwnStalls(timeline: Timeline, leaseMs: number): NodeJS.Timeout {
  let lookedAt = machineNow()
  return setInterval(() => {
    const now = machineNow()
    if (now - lookedAt > leaseMs / 4) timeline.add({ kind: 'stall', from: lookedAt, to: now })
    lookedAt = now
  }, 100)
}

/** Faults that happen in the processes, or later than they were asked for. */
function countedElsewhere(
  { crashes, locked, transactions }: Truth,
  timeline: Timeline,
): Partial<Record<Fault, number>> {
  return { crashers: crashes.length, locks: locked.length + transactions.length, replies: timeline.count('reply') }
}

/** Redis answers before it writes while a flush is under way, for up to two seconds; a little more for a busy machine. */
const EVERYSEC_MS = 2_500

/** What was accepted so shortly before a kill that a server which flushes once a second need not have it. */
function lostBefore(killedAt: readonly number[], accepted: readonly Accepted[]): Set<string> {
  const isDoomed = (at: number) => killedAt.some((killed) => at <= killed && killed - at <= EVERYSEC_MS)
  return new Set(accepted.flatMap(({ id, at }) => (at !== undefined && isDoomed(at) ? [id] : [])))
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '@nats-io/transport-node'
import { Redis } from 'ioredis'
import { openOps } from 'millrace/ops'
import { JetStreamInlet } from 'millrace/source/nats'
import { RedisStreamInlet, streamFields } from 'millrace/source/redis'
import { sqliteBackend } from 'millrace/sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNats, startRedis } from '../../servers/index.js'
import { Fleet } from './fleet.js'

/** More for a longer storm: MILLRACE_STORM_MESSAGES=20000. */
const MESSAGES = Number(process.env.MILLRACE_STORM_MESSAGES ?? 2_000)
const LEASE_MS = 2_000
const ATTEMPTS = 8
const MOST_MS = 150_000
/** One every second: a short storm has four, and is then let through. */
const MOST_KILLS = MESSAGES / 500

const numbers = Array.from({ length: MESSAGES }, (_, i) => i + 1)
/** A few hundred keys: a fleet works on as many lanes at a time. */
const keyOf = (n: number) => String(n % 500)
const isPoison = (n: number) => n % 97 === 0
const failsAlways = (n: number) => n % 101 === 0 && !isPoison(n)

type Server = Awaited<ReturnType<typeof startRedis>>
type Broker = 'redis' | 'nats'

let servers: Record<Broker, Server>
let dir: string

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'millrace-brokers-'))
  const [redis, nats] = await Promise.all([startRedis({ appendonly: true }), startNats()])
  servers = { redis, nats }
})
afterAll(async () => {
  await Promise.all([servers?.redis.stop(), servers?.nats.stop()])
  rmSync(dir, { recursive: true, force: true })
})

async function publish(broker: Broker, stream: string): Promise<void> {
  if (broker === 'redis') {
    const redis = new Redis(servers.redis.url)
    for (let from = 0; from < MESSAGES; from += 1_000) {
      const batch = redis.pipeline()
      for (const n of numbers.slice(from, from + 1_000))
        batch.xadd(stream, '*', ...streamFields(String(n), { key: keyOf(n) }))
      await batch.exec()
    }
    redis.disconnect()
    return
  }
  const nats = await connect({ servers: servers.nats.url })
  const subjects = [`${stream}.*`]
  await nats.request(`$JS.API.STREAM.CREATE.${stream}`, JSON.stringify({ name: stream, subjects, storage: 'file' }))
  for (let from = 0; from < MESSAGES; from += 500)
    await Promise.all(numbers.slice(from, from + 500).map((n) => nats.request(`${stream}.${keyOf(n)}`, String(n))))
  await nats.close()
}

function inletOn(broker: Broker, stream: string, letters: string) {
  const common = { leaseMs: LEASE_MS, deadLetters: letters, onError: () => undefined }
  return broker === 'redis'
    ? new RedisStreamInlet({ ...common, url: servers.redis.url, stream, group: 'fleet' })
    : new JetStreamInlet({ ...common, servers: servers.nats.url, stream, durable: 'fleet' })
}

/** Three consumers; one is killed every second, one is stopped past its lease, the server is restarted once. */
async function storm(broker: Broker, stream: string, work: string) {
  const letters = `${stream}_DEAD`
  await publish(broker, stream)
  const { url } = servers[broker]
  // The fewer there are, the longer each takes: all of the faults must come while there is something left to do.
  const handleMs = work === '' ? Math.max(25, 160_000 / MESSAGES) : Math.max(100, 480_000 / MESSAGES)
  const common = { broker, url, stream, letters, leaseMs: LEASE_MS, handleMs, attempts: ATTEMPTS, work }
  const fleet = new Fleet(common, mkdtempSync(join(dir, 'fleet-')), 3)
  const inlet = inletOn(broker, stream, letters)
  try {
    const startedAt = Date.now()
    let frozen: Promise<void> | undefined
    let restarted: Promise<void> | undefined
    let isBack = false
    let leftAfterRestart = 0
    for (let second = 1; ; second += 1) {
      await wait(1_000)
      // A server that is being restarted answers nothing for a while.
      const facts = await inlet.explain().catch(() => undefined)
      const left = facts === undefined ? undefined : facts.waiting + facts.unsettled
      if (isBack && leftAfterRestart === 0 && left !== undefined) leftAfterRestart = left
      if (left === 0 && isBack) break
      if (Date.now() - startedAt > MOST_MS) throw new Error(`it is not through: ${JSON.stringify(facts)}`)
      // The frozen one is number 2: it must live to say something late.
      if (fleet.kills < MOST_KILLS) fleet.kill(second % 2)
      if (second === 1) frozen = fleet.freeze(2, 2 * LEASE_MS)
      if (restarted === undefined && left !== undefined && left < 0.7 * MESSAGES)
        restarted = servers[broker].restart().then(() => {
          isBack = true
        })
    }
    const seconds = Math.round((Date.now() - startedAt) / 1_000)
    await Promise.all([frozen, restarted])
    await fleet.end()
    const found = []
    for (let after: string | undefined; ; after = found.at(-1)?.id) {
      const page = await inlet.letters.list({ limit: 500, ...(after === undefined ? {} : { after }) })
      found.push(...page)
      if (page.length < 500) break
    }
    return {
      truth: fleet.truth(),
      letters: found,
      kills: fleet.kills,
      seconds,
      leftAfterRestart,
      crashes: fleet.crashes,
      explained: await inlet.explain(),
    }
  } finally {
    await fleet.end()
    await inlet.close()
  }
}

const textOf = (value: Uint8Array) => new TextDecoder().decode(value)
const byNumber = (a: number, b: number) => a - b

describe.each(['redis', 'nats'] as const)(
  'a fleet on %s whose processes and server are killed and restarted',
  (broker) => {
    it('handles every message, and dead-letters exactly those that cannot succeed, once', async () => {
      const { truth, letters, kills, seconds, leftAfterRestart, crashes, explained } = await storm(
        broker,
        `STORM_${broker}`,
        '',
      )
      expect(crashes).toEqual([])
      expect(kills).toBeGreaterThanOrEqual(3)
      expect(leftAfterRestart).toBeGreaterThan(0)
      const done = truth.filter(({ is }) => is === 'done').map(({ n }) => n)
      const expected = numbers.filter((n) => !isPoison(n) && !failsAlways(n))
      expect([...new Set(done)].sort(byNumber)).toEqual(expected)
      const dead = numbers.filter((n) => isPoison(n) || failsAlways(n))
      expect(letters.map(({ value }) => Number(textOf(value))).sort(byNumber)).toEqual(dead)
      expect([explained.waiting, explained.unsettled]).toEqual([0, 0])
      // What was handled twice was handled beside a kill, a freeze or a restart.
      console.log(
        `${broker}: ${seconds} s, ${kills} kills, ${leftAfterRestart} of ${MESSAGES} left after the restart, ` +
          `${done.length - expected.length} of ${expected.length} messages were handled twice`,
      )
      const starts = new Map<number, number>()
      for (const { is, n } of truth) if (is === 'start') starts.set(n, (starts.get(n) ?? 0) + 1)
      let cut = 0
      for (const letter of letters) {
        const n = Number(textOf(letter.value))
        expect(letter.class).toBe(isPoison(n) ? 'poison' : 'retryable')
        if (!isPoison(n)) expect(letter.attempts).toBeGreaterThanOrEqual(ATTEMPTS)
        if (broker === 'nats') continue
        // Where only starts count, the record says how often it ran. A kill or a restart may come between the count and the first line
        // of a run, or between that line and the count.
        const began = starts.get(n) ?? 0
        if (letter.attempts === began) continue
        cut += 1
        expect([n, Math.abs((letter.attempts ?? 0) - began)]).toEqual([n, 1])
      }
      expect(cut).toBeLessThanOrEqual(kills)
    })

    it('adds an item of work for every message, none too few and none too many', async () => {
      const file = join(dir, `work-${broker}.db`)
      const { letters, kills, seconds, leftAfterRestart, crashes } = await storm(broker, `BRIDGE_${broker}`, file)
      expect(crashes).toEqual([])
      expect(kills).toBeGreaterThanOrEqual(3)
      expect(leftAfterRestart).toBeGreaterThan(0)
      console.log(
        `pipe on ${broker}: ${seconds} s, ${kills} kills, ${leftAfterRestart} of ${MESSAGES} left after the restart`,
      )
      const dead = numbers.filter(isPoison)
      expect(letters.map(({ value }) => Number(textOf(value))).sort(byNumber)).toEqual(dead)
      await using backend = sqliteBackend({ file })
      const ops = openOps(backend)
      const seen: number[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await ops.list({ type: 'order', limit: 500, ...(cursor === undefined ? {} : { cursor }) })
        seen.push(...page.items.map(({ envelope }) => Number(envelope.tags?.[0])))
        cursor = page.next
        if (cursor === undefined) break
      }
      expect(seen.sort(byNumber)).toEqual(numbers.filter((n) => !isPoison(n)))
    })
  },
)

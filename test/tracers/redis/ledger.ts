import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import type { At } from '../../../src/core/time.js'
import { nextTry } from '../../../src/ports/envelope.js'
import type { Claimed, Envelope } from '../../../src/ports/item.js'
import type { ClaimAsk, ClaimReply, ItemView } from '../../../src/ports/ledger.js'
import type { CommitResult, GroupValue, Settlement } from '../../../src/ports/settlement.js'
import { restOf } from '../columns.js'
import { tracedGuard } from '../sorted-effects.js'
import type { Tracer } from '../tracer.js'
import { type StoredItem, viewFrom } from '../view.js'
import { encodeBatch } from './encode.js'

/** How many lapsed leases and due items one claim brings back. */
const STEP = 1_000

type Text = string | null
type Word = string | number
type CommitReply = readonly [kinds: string, closed: readonly unknown[], conflicts: readonly unknown[]]

interface Scripts {
  millraceCommit(prefix: string, ...words: Word[]): Promise<CommitReply>
  millraceClaim(prefix: string, ...words: Word[]): Promise<[at: number, more: number, due: number | null, ...Text[][]]>
}

export interface RedisTracerOptions {
  readonly url: string
  /** Begins every key, in braces: a cluster keeps keys with one tag together. */
  readonly prefix: string
  readonly now?: () => At
}

export class RedisTracer implements Tracer {
  readonly #redis: Redis & Scripts
  readonly #prefix: string
  readonly #now: () => At | ''
  #sent = 0

  constructor(options: RedisTracerOptions) {
    this.#prefix = `{${options.prefix}}`
    this.#now = options.now ?? (() => '')
    const redis = new Redis(options.url)
    const lua = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')
    redis.defineCommand('millraceCommit', { lua: lua('commit.lua'), numberOfKeys: 1 })
    redis.defineCommand('millraceClaim', { lua: lua('claim.lua'), numberOfKeys: 1 })
    const send = redis.sendCommand.bind(redis)
    redis.sendCommand = (...command) => {
      this.#sent += 1
      return send(...command)
    }
    // `defineCommand` has just added the two.
    this.#redis = redis as Redis & Scripts
  }

  roundTrips(): number {
    return this.#sent
  }

  async commit(batch: readonly Settlement[]): Promise<readonly CommitResult[]> {
    const reply = await this.#redis.millraceCommit(this.#prefix, this.#now(), ...encodeBatch(batch))
    return resultsFrom(reply, batch)
  }

  async claim(ask: ClaimAsk): Promise<ClaimReply> {
    const token = randomUUID()
    const queues = ask.from.flatMap(({ queue, max }) => [queue, max])
    const head = [this.#now(), token, ask.leaseMs, ask.worker, ask.startNow, STEP]
    const [at, more, due, ...rows] = await this.#redis.millraceClaim(this.#prefix, ...head, ...queues)
    return {
      items: rows.map((row) => claimedFrom(row, token, at + ask.leaseMs)),
      more: more === 1,
      ...(due === null ? {} : { nextDueAt: due }),
      at,
    }
  }

  async read(ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    const [seconds] = this.#now() === '' ? await this.#redis.time() : [0]
    const now = this.#now() || Number(seconds) * 1_000
    return Promise.all(
      ids.map(async (id) => {
        const row = await this.#redis.hgetall(this.#key('item', id))
        const [body, outcome] = await this.#redis.mget(this.#key('body', id), this.#key('outcome', id))
        return row['state'] === undefined ? undefined : viewFrom(storedItem(row, body ?? '{}', outcome ?? null), now)
      }),
    )
  }

  async groups(ids: readonly string[]): Promise<readonly ((GroupValue & { readonly open: number }) | undefined)[]> {
    return Promise.all(
      ids.map(async (id) => {
        const row = await this.#redis.hgetall(this.#key('group', id))
        if (row['open'] !== undefined) return groupFrom(row['open'], row['value'], row['final'], row['version'])
        const root = await this.#redis.hgetall(this.#key('item', id))
        if (root['alone'] !== '1') return undefined
        const [value, outcome] = await this.#redis.mget(this.#key('value', id), this.#key('outcome', id))
        const said = Number(root['groupVersion'] ?? 0) > 0 ? (value ?? outcome ?? undefined) : undefined
        return groupFrom(root['endAt'] === undefined ? '1' : '0', said, root['groupFinal'], root['groupVersion'])
      }),
    )
  }

  #key(kind: string, id: string): string {
    return `${this.#prefix}:${kind}:${id}`
  }

  async close(): Promise<void> {
    await this.#redis.quit()
  }
}

function resultsFrom([kinds, closed, conflicts]: CommitReply, batch: readonly Settlement[]): CommitResult[] {
  const results = batch.map((settlement, i): CommitResult => {
    switch (kinds[i]) {
      case 'a':
        return { kind: 'applied', closed: [] }
      case 'r':
        return { kind: 'repeated', id: tracedGuard(settlement).id }
      default:
        return { kind: 'stale' }
    }
  })
  for (let i = 0; i < closed.length; i += 3) {
    const [settlement, groupId, value] = closed.slice(i, i + 3) as [number, string, Text]
    const { closed: others } = results[settlement - 1] as Extract<CommitResult, { kind: 'applied' }>
    const one = value === null ? { groupId } : { groupId, value }
    results[settlement - 1] = { kind: 'applied', closed: [...others, one] }
  }
  for (let i = 0; i < conflicts.length; i += 5) {
    const [settlement, groupId, value, final, version] = conflicts.slice(i, i + 5) as [
      number,
      string,
      Text,
      string,
      number,
    ]
    const now = { ...(value === null ? {} : { value }), final: final === '1', version }
    results[settlement - 1] = { kind: 'conflict', groupId, now }
  }
  return results
}

function claimedFrom(row: readonly (Text | number)[], token: string, until: At): Claimed {
  // The order is that of the reply of claim.lua; numbers come as text, unless the script made them.
  const [id, queue, body, attempt, startAt, fence, lapses, crashes, deliveries, met, started] = row
  const envelope = JSON.parse(body as string) as Envelope
  const item = {
    lease: { id: id as string, queue: queue as string, token, fence: Number(fence), until },
    envelope: attempt === null ? envelope : nextTry(envelope, Number(attempt), Number(startAt)),
    lapses: Number(lapses ?? 0),
    crashes: Number(crashes ?? 0),
    deliveries: Number(deliveries),
    started: started === 1,
  }
  return met === null ? item : { ...item, gate: { met: met === '1' } }
}

function storedItem(row: Record<string, string>, body: string, outcome: string | null): StoredItem {
  const status = row['state'] as StoredItem['status']
  const envelope = JSON.parse(body) as Envelope
  const number = (name: string) => (row[name] === undefined || row[name] === '' ? null : Number(row[name]))
  const whileRunning = <T>(value: T) => (status === 'running' ? value : null)
  return {
    ...envelope,
    attempt: number('attempt') ?? envelope.attempt,
    startAt: number('startAt') ?? envelope.startAt,
    rest: restOf(envelope),
    queue: row['queue']!,
    status,
    dueAt: number('due'),
    holdBy: row['holdBy'] ?? null,
    holdKey: row['holdKey'] ?? null,
    worker: whileRunning(row['worker'] ?? null),
    leaseUntil: whileRunning(number('until')),
    runAt: number('runAt'),
    ending: row['ending'] ?? null,
    class: row['class'] || null,
    outcome,
    endAt: number('endAt'),
    lapses: number('lapses') ?? 0,
    crashes: number('crashes') ?? 0,
  }
}

function groupFrom(open: string, value: string | undefined, final: string | undefined, version: string | undefined) {
  return {
    ...(value === undefined ? {} : { value }),
    open: Number(open),
    final: final === '1',
    version: Number(version ?? 0),
  }
}

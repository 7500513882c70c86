import { newToken } from '../../core/ids.js'
import { isWellFormed, toWellFormed } from '../../core/well-formed.js'
import { expiredShare } from '../../ports/expired-share.js'
import type { ClaimAsk, Ledger } from '../../ports/ledger.js'
import { keepsUtf8, refusalOf } from '../../ports/refusal.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { claimReplyFrom, groupFrom, resultsFrom, scheduleFrom, viewFrom } from './decode.js'
import type { Desk } from './desk.js'
import { BatchWords } from './encode.js'
import { inSteps } from './in-steps.js'
import { inspectOn } from './inspect.js'
import { modeGuard } from './mode.js'
import type { Signals } from './signals.js'
import { Swept } from './swept.js'
import { msWord } from './time.js'
import { workerText } from './worker-text.js'

/** So many lapsed, due, expired or foreign ones a claim looks at: what it finds beyond is for the next. */
const STEP = 200
/** Most settlements in one script: while it runs, nobody else is served. */
const MAX_BATCH = 500
/** Most leases that one script hands out of a queue, or extends: more are asked for again. */
const MAX_LEASES = 500

/** The native ledger: one script for each verb. */
export function redisLedger(desk: Desk, signals: Signals): Ledger {
  const opened = modeGuard(desk, 'native')
  const swept = new Swept(desk)
  const commitSome = async (batch: readonly Settlement[]): Promise<readonly CommitResult[]> => {
    const words = new BatchWords()
    const results: CommitResult[] = []
    const sent: Settlement[] = []
    for (const settlement of batch) {
      const stopped = stoppedBy(settlement, desk.maxItemBytes, words)
      // A hole is filled by the script's answer.
      results.push(stopped ?? { kind: 'stale' })
      if (stopped === undefined) sent.push(settlement)
    }
    if (sent.length === 0) return results
    const reply = (await desk.run('commit', words.all())) as readonly unknown[]
    swept.removed(reply[4] as number, reply[3] === 1)
    const answers = resultsFrom(reply, sent)
    let next = 0
    return batch.map((settlement, i) => (settlement === sent[next] ? answers[next++]! : results[i]!))
  }
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes: desk.maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    async claim(ask) {
      await opened()
      for (const { queue } of ask.from) signals.serves(queue)
      const token = newToken()
      const reply = claimReplyFrom(await desk.run('claim', claimWords(ask, token)), token, Math.ceil(ask.leaseMs))
      swept.removed(reply.removed, reply.hasExpired)
      const removed = swept.tell()
      return removed === 0 ? reply.claimed : { ...reply.claimed, removed }
    },
    async extend(held, leaseMs, me) {
      await opened()
      const head = [msWord(leaseMs) || '0', me.id, workerText(me)]
      let answers = ''
      // Once at least: a worker that holds nothing is heard of as well.
      for (let from = 0; from === 0 || from < held.length; from += MAX_LEASES) {
        const words: (string | number)[] = [...head]
        for (const { lease, running, progress } of held.slice(from, from + MAX_LEASES)) {
          // The engine has checked the size and told its author; here it only must not pile up.
          const isKept = progress !== undefined && progress.length <= desk.maxItemBytes
          words.push(lease.id, lease.token, running ? 1 : 0, isKept ? `=${toWellFormed(progress)}` : '')
        }
        answers += (await desk.run('extend', words)) as string
      }
      return held.map((_, i) => (answers[i] === 'h' ? 'held' : answers[i] === 'c' ? 'cancelled' : 'lost'))
    },
    async leave(worker) {
      await opened()
      await desk.run('leave', [worker])
    },
    async commit(batch) {
      await opened()
      if (batch.length <= MAX_BATCH) return commitSome(batch)
      const results: CommitResult[] = []
      for (let from = 0; from < batch.length; from += MAX_BATCH)
        results.push(...(await commitSome(batch.slice(from, from + MAX_BATCH))))
      return results
    },
    async read(ids) {
      await opened()
      const rows = await inSteps(ids, (some) => desk.run('read', [1, ...some]))
      return rows.map((row, i) => (row === null || !isWellFormed(ids[i]!) ? undefined : viewFrom(row as never)))
    },
    async groups(ids) {
      await opened()
      const rows = await inSteps(ids, (some) => desk.run('groups-read', [1, ...some]))
      return rows.map((row, i) => (isWellFormed(ids[i]!) ? groupFrom(row as never) : undefined))
    },
    async watch(inbox, { ids, groups }) {
      await opened()
      await inSteps(ids, (some) => desk.run('watch', [inbox, some.length, ...some]))
      await inSteps(groups, (some) => desk.run('watch', [inbox, 0, ...some]))
    },
    async schedules(names) {
      if (names.length === 0) return []
      const found = (await desk.run('facts', ['schedules', ...names])) as readonly (string | null)[]
      return names.map((_, i) => scheduleFrom(found[i]))
    },
    async paused() {
      const keys = ((await desk.run('facts', ['paused'])) as readonly string[]).toSorted()
      const named = (what: string) => keys.filter((key) => key.startsWith(what)).map((key) => key.slice(what.length))
      return { queues: named('queue:'), types: named('type:') }
    },
    onReady: (wake) => signals.onReady(wake),
    onInbox: (inbox, hear) => signals.onInbox(inbox, hear),
    inspect: inspectOn(desk, (removed) => swept.removed(removed, false)),
  }
}

function claimWords(ask: ClaimAsk, token: string): (string | number)[] {
  const head = [token, msWord(ask.leaseMs) || '0', ask.worker, STEP, ask.rooms?.length ?? '']
  const rooms = ask.rooms?.flatMap(({ types, max }) => [atMost(MAX_LEASES, max), types.length, ...types]) ?? []
  const queues = ask.from.flatMap(({ queue, max }) => {
    const most = atMost(MAX_LEASES, max)
    return [queue, most, expiredShare(most)]
  })
  return [...head, ...rooms, ...queues]
}

const atMost = (most: number, asked: number): number => Math.min(most, Math.max(0, Math.floor(asked)))

/** What keeps a settlement from being sent: one that makes no sense must not take its neighbours with it. */
function stoppedBy(settlement: Settlement, maxItemBytes: number, words: BatchWords): CommitResult | undefined {
  try {
    // An input that cannot be written is spelt as JSON (bodyTexts): only what is left is judged.
    const refusal = refusalOf(settlement, maxItemBytes, keepsUtf8)
    if (refusal === undefined) words.add(settlement)
    return refusal
  } catch (error) {
    return { kind: 'failed', error }
  }
}

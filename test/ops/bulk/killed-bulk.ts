import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import type { ActionReport } from '../../../src/ops/api.js'
import { openOpsContext } from '../../../src/ops/context.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import type { Settlement } from '../../../src/ports/settlement.js'
import { backendAt } from './backend-at.js'

const program = fileURLToPath(new URL('action.child.ts', import.meta.url))
const BATCH = 1_000
const DAY = 86_400_000

export interface KilledBulk {
  readonly report: ActionReport
  /** How far each of those who were killed had come, by their own account. */
  readonly killedAt: readonly number[]
  /** Items that were redriven, by how often; and the groups that are open as they should be. */
  readonly redriven: ReadonlyMap<number, number>
  readonly openGroups: number
  readonly deadLeft: number
  /** What those who acted took, from their first word to their last, and how many they changed in that time. */
  readonly actingMs: number
  readonly actedOn: number
  readonly countedMs: number
  readonly firstPageMs: number
}

/** Makes that many dead items, starts a process that redrives them, kills it twice with -9, and lets a third one continue. */
export async function killedBulk(address: string, count: number): Promise<KilledBulk> {
  const backend = backendAt(address)
  const { ledger } = openOpsContext(overPlainPorts, backend, {})
  try {
    await bury(ledger, count)
    const from = performance.now()
    const page = await ledger.inspect!.list({ state: 'dead', type: 'charge', limit: 50 })
    const firstPageMs = performance.now() - from
    if (page.items.length !== Math.min(50, count)) throw new Error('the first page is not full')
    const counting = performance.now()
    await ledger.inspect!.count?.({ state: 'dead', type: 'charge' })
    const countedMs = performance.now() - counting

    const killedAt: number[] = []
    let actionId = 'redrive'
    const acting = { ms: 0, items: 0 }
    const act = async (killAfter: number) => {
      const { last, killed, ms, items } = await actor(address, actionId, killAfter)
      acting.ms += ms
      acting.items += items
      actionId = last.id
      if (killed) killedAt.push(last.done)
      return last
    }
    await act(Math.floor(count / 4))
    await act(Math.floor(count / 2))
    const report = await act(Number.POSITIVE_INFINITY)
    return {
      report,
      killedAt,
      ...(await tally(ledger)),
      actingMs: acting.ms,
      actedOn: acting.items,
      countedMs,
      firstPageMs,
    }
  } finally {
    await backend.close()
  }
}

/** Runs the acting process, and kills it as soon as it has reported that many. */
async function actor(address: string, what: string, killAfter: number) {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', program, address, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  let first: { readonly ms: number; readonly done: number } | undefined
  let last: ActionReport | undefined
  let lastMs = 0
  for await (const line of createInterface({ input: child.stdout! })) {
    last = JSON.parse(line) as ActionReport
    lastMs = performance.now()
    first ??= { ms: lastMs, done: last.done }
    if (last.done >= killAfter) child.kill('SIGKILL')
  }
  await ended
  if (last === undefined || first === undefined) throw new Error('the process that was to act said nothing')
  return { last, killed: child.signalCode === 'SIGKILL', ms: lastMs - first.ms, items: last.done - first.done }
}

/** That many items that have run once and died of the same. */
async function bury(ledger: Ledger, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const now = Date.now()
    const ids = Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => `order ${from + n}`)
    await ledger.commit(
      ids.map((id): Settlement => {
        const item = { id, type: 'charge', groupId: id, input: `"${'x'.repeat(200)}"`, attempt: 1, priority: 0 }
        return {
          guard: { by: 'absent', id },
          effects: [
            { do: 'joinGroup', groupId: id, count: 1 },
            { do: 'enqueue', item: { ...item, queueAt: now, startAt: now }, queue: 'default', delayMs: 0 },
          ],
        }
      }),
    )
    let left = ids.length
    while (left > 0) {
      const { items } = await ledger.claim({
        queues: [{ queue: 'default', max: BATCH }],
        leaseMs: 60_000,
        worker: 'gravedigger',
      })
      left -= items.length
      await ledger.commit(
        items.map(({ lease, envelope: { id, groupId } }): Settlement => {
          const error = 'Error: the bank is down'
          const was = { attempt: 1, startedAt: now, endedAt: now, worker: 'gravedigger', error, fingerprint: 'f1' }
          return {
            guard: { by: 'lease', lease },
            effects: [
              { do: 'recordAttempt', id, was: { ...was, class: 'retryable', rule: 'default' } },
              { do: 'deadLetter', id, ending: 'exhausted', class: 'retryable', error, keepMs: 30 * DAY },
              { do: 'leaveGroup', groupId, count: 1 },
            ],
          }
        }),
      )
    }
  }
}

/** What has become of all of them. */
async function tally(ledger: Ledger) {
  const redriven = new Map<number, number>()
  let openGroups = 0
  let cursor: string | undefined
  do {
    const page = await ledger.inspect!.list({
      state: 'waiting',
      type: 'charge',
      limit: BATCH,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const { envelope } of page.items) {
      const times = envelope.redrives ?? 0
      redriven.set(times, (redriven.get(times) ?? 0) + 1)
    }
    const groups = await ledger.groups(page.items.map(({ envelope }) => envelope.groupId))
    openGroups += groups.filter((group) => group?.open === 1).length
    cursor = page.next
  } while (cursor !== undefined)
  const counts = await ledger.inspect!.counts()
  const deadLeft = counts.reduce((sum, { counts: of }) => sum + (of.dead ?? 0), 0)
  return { redriven, openGroups, deadLeft }
}

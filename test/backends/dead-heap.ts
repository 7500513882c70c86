import type { Ledger } from '../../src/ports/ledger.js'
import type { Settlement } from '../../src/ports/settlement.js'
import { ask, enqueue, item, times } from './settlements.js'

/** No more than any ledger hands out in one claim. */
const BATCH = 500
const FAILURES = ['timeout', 'refused', 'too large', 'not found', 'denied'] as const
const DAY = 86_400_000

/** Input that would be felt if a list loaded it. */
const PAYLOAD = JSON.stringify('x'.repeat(2_000))

/** Fills a ledger with dead items: of five failures, ten types, three tags. */
export async function fillWithDead(ledger: Ledger, count: number): Promise<void> {
  for (let made = 0; made < count; made += BATCH) {
    const settlements = times(Math.min(BATCH, count - made), (i) => {
      const no = made + i
      const envelope = item(`d${no}`, { type: `type ${no % 10}`, input: PAYLOAD, tags: [`tag ${no % 3}`] })
      return enqueue(envelope)
    })
    await ledger.commit(settlements)
    const { items } = await ledger.claim(ask(BATCH))
    const now = (await ledger.claim({ queues: [], leaseMs: 1, worker: 'w' })).now
    await ledger.commit(
      items.map(({ lease, envelope }): Settlement => {
        const fingerprint = FAILURES[Number(envelope.id.slice(1)) % FAILURES.length]!
        const error = `Error: ${fingerprint} of ${envelope.id}`
        const ran = {
          attempt: 1,
          startedAt: now,
          endedAt: now,
          worker: 'w',
          class: 'retryable',
          rule: 'default',
        } as const
        return {
          guard: { by: 'lease', lease },
          effects: [
            { do: 'recordAttempt', id: envelope.id, was: { ...ran, error, fingerprint } },
            { do: 'deadLetter', id: envelope.id, ending: 'exhausted', class: 'retryable', error, keepMs: 30 * DAY },
            { do: 'leaveGroup', groupId: envelope.groupId, count: 1 },
          ],
        }
      }),
    )
  }
}

/** What people ask of a heap of dead items, by name. */
export const QUESTIONS: Readonly<Record<string, (ledger: Ledger) => Promise<number>>> = {
  'list dead, first page of 50': async (l) => (await l.inspect!.list({ state: 'dead', limit: 50 })).items.length,
  'list by fingerprint': async (l) =>
    (await l.inspect!.list({ state: 'dead', fingerprint: 'timeout', limit: 50 })).items.length,
  'list by fingerprint, class, type and tag': async (l) =>
    (
      await l.inspect!.list({
        state: 'dead',
        fingerprint: 'timeout',
        class: 'retryable',
        type: 'type 0',
        tag: 'tag 0',
        limit: 50,
      })
    ).items.length,
  'count dead': (l) => l.inspect!.count!({ state: 'dead' }),
  'count by fingerprint': (l) => l.inspect!.count!({ state: 'dead', fingerprint: 'timeout' }),
  'count by fingerprint, class, type and tag': (l) =>
    l.inspect!.count!({ state: 'dead', fingerprint: 'timeout', class: 'retryable', type: 'type 0', tag: 'tag 0' }),
  'count by tag': (l) => l.inspect!.count!({ state: 'dead', tag: 'tag 1' }),
  failures: async (l) => (await l.inspect!.failures!(20)).length,
  'flow of a minute': async (l) => (await l.inspect!.throughput!(60_000)).reduce((sum, { failed }) => sum + failed, 0),
  'stuck items, first page': async (l) => (await l.inspect!.stuckItems!({ limit: 50 })).items.length,
  counts: async (l) => (await l.inspect!.counts()).length,
}

/** Asks everything five times, and returns the median of the times taken. */
export async function figures(
  ledger: Ledger,
): Promise<readonly { readonly question: string; readonly ms: number; readonly answer: number }[]> {
  const found: { question: string; ms: number; answer: number }[] = []
  for (const [question, put] of Object.entries(QUESTIONS)) {
    const took: number[] = []
    let answer = 0
    for (let round = 0; round < 5; round += 1) {
      const from = performance.now()
      answer = await put(ledger)
      took.push(performance.now() - from)
    }
    found.push({ question, ms: Math.round(took.sort((a, b) => a - b)[2]! * 10) / 10, answer })
  }
  return found
}

import type { At } from '../../core/time/time.js'
import type { ItemSummary } from '../../ports/inspect.js'
import { isAlive, runs, type SeenWorker } from '../../work/worker/worker-registration.js'
import type { OpsContext } from '../context.js'
import { durationText } from '../duration-text.js'
import { aliveText, unhandledRemedy } from '../fleet/workers.js'
import { ageOf, type Found, GRACE_MS } from './found.js'

interface QueueType {
  readonly queue: string
  readonly type: string
  count: number
  oldest: ItemSummary
  oldestAt: At
}

/** Ready items and items with lapsed leases, by queue and type. */
export class QueueTypes {
  readonly #queueTypes = new Map<string, QueueType>()

  /** An item that has been ready, or without a live lease, since then. */
  add(view: ItemSummary, since: At): void {
    const queue = view.queue ?? 'default'
    const { type } = view.envelope
    const key = JSON.stringify([queue, type])
    const one = this.#queueTypes.get(key)
    if (one === undefined) this.#queueTypes.set(key, { queue, type, count: 1, oldest: view, oldestAt: since })
    else {
      one.count += 1
      if (since < one.oldestAt) Object.assign(one, { oldest: view, oldestAt: since })
    }
  }

  /** Those that no live worker would ever run. Paused ones are left out: they wait for a person to resume them. */
  async unserved(context: OpsContext): Promise<readonly Found[]> {
    const all = [...this.#queueTypes.values()]
    if (all.length === 0) return []
    const [workers, paused, now, again] = await Promise.all([
      context.inspect('audit').workers(),
      context.ledger.paused?.({ queues: all.map(({ queue }) => queue), types: all.map(({ type }) => type) }),
      context.now(),
      context.summaries(all.map(({ oldest }) => oldest.envelope.id)),
    ])
    return all.flatMap((one, i): readonly Found[] => {
      const { queue, type, oldestAt } = one
      if (paused?.queues.includes(queue) === true || paused?.types.includes(type) === true) return []
      if (now - oldestAt < GRACE_MS || again[i]?.status !== one.oldest.status) return []
      const found = unservedIn(one, workers, now)
      return found === undefined ? [] : [found]
    })
  }
}

function unservedIn({ queue, type, count, oldest, oldestAt }: QueueType, workers: readonly SeenWorker[], now: At) {
  const alive = workers.filter((worker) => isAlive(worker, now))
  if (alive.some((worker) => runs(worker, queue, type))) return undefined
  const { id } = oldest.envelope
  const what = `${id}${count === 1 ? '' : ` and ${count - 1} more`} of type "${type}" ${count === 1 ? 'waits' : 'wait'} in queue "${queue}" (the oldest for ${durationText(ageOf(oldestAt, now))})`
  const serving = alive.filter(({ queues }) => queues.includes(queue))
  const found: Found =
    serving.length === 0
      ? {
          code: 'no-worker',
          id,
          text: `${what}, and no live worker serves that queue.`,
          repair: `Start a process with createWork on this backend that serves queue "${queue}".`,
        }
      : {
          code: 'unknown-type',
          id,
          text: `${what}, and no live worker of that queue handles the type. ${aliveText(serving)}`,
          repair: unhandledRemedy(type, count === 1 ? 'it' : 'them'),
        }
  return found
}

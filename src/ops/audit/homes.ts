import type { At } from '../../core/time.js'
import type { ItemSummary } from '../../ports/ledger.js'
import { isAlive, runs, type SeenWorker } from '../../work/alive.js'
import type { Desk } from '../desk.js'
import { durationText } from '../duration-text.js'
import { aliveText, unhandledRemedy } from '../unhandled.js'
import { agoOf, type Found, GRACE_MS } from './suspicion.js'

interface Home {
  readonly queue: string
  readonly type: string
  count: number
  oldest: ItemSummary
  oldestAt: At
}

/** What waits for somebody to run it, by queue and type; and what was left behind by those who ran it. */
export class Homes {
  readonly #homes = new Map<string, Home>()

  /** An item that has been ready, or without its holder, since then. */
  add(view: ItemSummary, since: At): void {
    const queue = view.queue ?? 'default'
    const { type } = view.envelope
    const key = JSON.stringify([queue, type])
    const home = this.#homes.get(key)
    if (home === undefined) this.#homes.set(key, { queue, type, count: 1, oldest: view, oldestAt: since })
    else {
      home.count += 1
      if (since < home.oldestAt) Object.assign(home, { oldest: view, oldestAt: since })
    }
  }

  /** Those that nobody who is alive would ever run. What is paused waits for a person, who knows. */
  async unserved(desk: Desk): Promise<readonly Found[]> {
    const homes = [...this.#homes.values()]
    if (homes.length === 0) return []
    const [workers, paused, now, again] = await Promise.all([
      desk.inspect('audit').workers(),
      desk.ledger.paused?.({ queues: homes.map(({ queue }) => queue), types: homes.map(({ type }) => type) }),
      desk.now(),
      desk.summaries(homes.map(({ oldest }) => oldest.envelope.id)),
    ])
    return homes.flatMap((home, i): readonly Found[] => {
      const { queue, type, oldestAt } = home
      if (paused?.queues.includes(queue) === true || paused?.types.includes(type) === true) return []
      if (now - oldestAt < GRACE_MS || again[i]?.status !== home.oldest.status) return []
      const found = unservedIn(home, workers, now)
      return found === undefined ? [] : [found]
    })
  }
}

function unservedIn({ queue, type, count, oldest, oldestAt }: Home, workers: readonly SeenWorker[], now: At) {
  const alive = workers.filter((worker) => isAlive(worker, now))
  if (alive.some((worker) => runs(worker, queue, type))) return undefined
  const { id } = oldest.envelope
  const what = `${id}${count === 1 ? '' : ` and ${count - 1} more`} of type "${type}" ${count === 1 ? 'waits' : 'wait'} in queue "${queue}" (the oldest for ${durationText(agoOf(oldestAt, now))})`
  const serving = alive.filter(({ queues }) => queues.includes(queue))
  const found: Found =
    serving.length === 0
      ? {
          code: 'no-worker',
          id,
          text: `${what}, and no live worker looks at that queue.`,
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

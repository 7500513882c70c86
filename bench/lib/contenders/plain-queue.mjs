import { randomUUID } from 'node:crypto'

/**
 * @typedef {object} Job
 * @property {string} id
 * @property {string} input
 */

/** How many jobs it runs at once: as many as ours does by default. */
const RUNNERS = 32

/**
 * A queue in memory as one writes it by hand: items with ids, a few runners, the outcome of each kept by its id. No lease, no retry,
 * no group, no type; what was in its process is gone with it. Its input is text, as in every queue that does not hand out the
 * caller's own object.
 * @type {import('./contender.js').OpenContender}
 */
export async function openPlainQueue() {
  /** @type {Job[]} */
  let waiting = []
  /** @type {Map<string, { state: 'completed' | 'failed', endedAt: number, result: unknown }>} */
  const outcomes = new Map()
  let next = 0
  /** @type {((payload: import('./contender.js').Payload) => void) | undefined} */
  let handle
  let running = 0

  /** @param {import('./contender.js').Payload} payload */
  function add(payload) {
    const id = randomUUID()
    waiting.push({ id, input: JSON.stringify(payload) })
    if (handle !== undefined && running < RUNNERS) void run()
    return id
  }

  async function run() {
    running += 1
    while (handle !== undefined && next < waiting.length) {
      const { id, input } = /** @type {Job} */ (waiting[next++])
      try {
        const result = await handle(JSON.parse(input))
        outcomes.set(id, { state: 'completed', endedAt: Date.now(), result })
      } catch (error) {
        outcomes.set(id, { state: 'failed', endedAt: Date.now(), result: error })
      }
    }
    running -= 1
  }

  return {
    add: async (payload) => add(payload),
    addMany: async (payloads) => payloads.map(add),
    async work(handler) {
      handle = handler
      for (let i = running; i < RUNNERS; i += 1) void run()
    },
    counts: async () => ({ pending: waiting.length - next + running, completed: outcomes.size }),
    async close() {
      handle = undefined
      waiting = []
    },
  }
}

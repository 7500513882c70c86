import { createWork, defineWork, memoryBackend } from 'millrace'
import { openOps } from 'millrace/ops'

/**
 * Ours, as a user has it: the public API with the default options.
 * @type {import('./contender.js').OpenContender}
 */
export async function openMillrace(place, { types, onError }) {
  const backend = await backendOf(place)
  /** @type {(payload: import('./contender.js').Payload) => void} */
  let handle = () => {}
  const work = Array.from({ length: types }, (_, i) =>
    defineWork(`bench-${i}`, (/** @type {import('./contender.js').Payload} */ payload) => handle(payload)),
  )
  let ranInGroups = 0
  const leaf = defineWork('bench-leaf', (/** @type {number} */ _) => {
    ranInGroups += 1
  })
  const family = defineWork('bench-family', (/** @type {number} */ size, ctx) =>
    ctx.queue(Array.from({ length: size }, (_, i) => leaf(i))),
  )
  const makeSystem = () => createWork({ backend, work: [...work, leaf, family], autoStart: false, onError })
  let system = makeSystem()
  const ops = openOps(backend)
  /** @param {import('./contender.js').Payload} payload */
  const workOf = (payload) => /** @type {(typeof work)[number]} */ (work[payload.n % types])(payload)
  // Tables are made and connections opened before anything is measured.
  await system.states(['nothing'])
  return {
    add: (payload) => system.add(workOf(payload)),
    addMany: (payloads) => system.enqueueMany(payloads.map(workOf)),
    async work(handler) {
      handle = handler
      system.start()
    },
    async groups(groups, itemsOfEach) {
      ranInGroups = 0
      system.start()
      const handles = await system.enqueueMany(Array.from({ length: groups }, () => family(itemsOfEach)))
      await Promise.all(handles)
      return ranInGroups
    },
    async rest() {
      await system.stop()
      system = makeSystem()
    },
    async counts() {
      let [pending, completed] = [0, 0]
      for (const { counts } of await ops.counts()) {
        for (const [state, count] of Object.entries(counts)) {
          if (state === 'completed') completed += count
          // What is dead was neither completed nor waits: it is missed as a completed one.
          else if (state !== 'dead' && state !== 'cancelled') pending += count
        }
      }
      return { pending, completed }
    },
    async close() {
      await system.stop()
      await backend.close()
    },
  }
}

/** @param {import('./contender.js').Place} place */
async function backendOf({ kind, address }) {
  switch (kind) {
    case 'memory':
      return memoryBackend()
    case 'sqlite':
      return (await import('millrace/sqlite')).sqliteBackend({ file: address })
    case 'redis':
      return (await import('millrace/redis')).redisBackend({ url: address })
    case 'postgres':
      return (await import('millrace/postgres')).postgresBackend({ connectionString: address })
  }
}

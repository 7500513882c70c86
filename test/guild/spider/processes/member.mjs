// One process of a guild: it plans rigs, runs engines and retries, until it is killed. A writ's body says when its engine fails:
// in its first rig, or always.
// Usage: member.mjs <address> <work address> <log> <ms of a run> <ms of a lease> where an address is a file of SQLite or postgres://…#<schema>
import { appendFileSync } from 'node:fs'
import { createWork } from 'millrace'
import { createGuild } from 'millrace/guild'
import { createStacks, postgresStacks, sqliteStacks } from 'millrace/guild/stacks'
import { postgresBackend } from 'millrace/postgres'
import { sqliteBackend } from 'millrace/sqlite'

const [, , address = '', workAddress = '', log = '', runMs = '', leaseMs = ''] = process.argv
const isPostgres = address.startsWith('postgres')
const [url = '', schema] = address.split('#')
const backend = isPostgres
  ? postgresStacks({ connectionString: url, schema: schema ?? '', maxConnections: 4 })
  : sqliteStacks({ file: address })
const LEASE_MS = Number(leaseMs)

/** Appended in one piece before and after the engine's work: what an independent checker reads.
 * @param {string[]} words */
const note = (...words) => appendFileSync(log, `${Date.now()} ${process.pid} ${words.join(' ')}\n`)

// A process that stalls loses its leases; the checker has to know.
let lastTick = Date.now()
const tick = () => {
  if (Date.now() - lastTick > LEASE_MS / 3) note('stall', String(lastTick))
  lastTick = Date.now()
}
setInterval(tick, 100)

/** @returns {import('millrace/guild/spider').SpiderApi} */
const spider = () => g.apparatus('spider')
const step = {
  id: 'step',
  /** @type {import('millrace/guild/fabricator').EngineDesign['run']} */
  async run({ fails }, { rigId, engineId }) {
    const key = `${rigId}/${engineId}`
    tick()
    note('begin', key)
    const { attempt, writId } = await spider().show(rigId)
    await new Promise((resolve) => setTimeout(resolve, Number(runMs)))
    tick()
    note('end', key, writId, String(attempt))
    if (fails === 'always' || attempt === 1) throw new Error(`attempt ${attempt} fails`)
    return { status: 'completed', yields: { attempt } }
  },
}

const g = await createGuild({
  strict: true,
  config: {
    plugins: ['clerk', 'fabricator', 'spider', 'clockworks-retry'],
    stacks: { watcherLeaseMs: 1_000 },
    spider: {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the template.
      rigTemplates: { standard: { engines: [{ id: 'step', designId: 'step', givens: { fails: '${writ.body}' } }] } },
      rigTemplateMappings: { mandate: 'standard' },
      maxConcurrentEngines: 16,
      pollIntervalMs: 1_000,
    },
  },
  plugins: [
    {
      package: 'millrace/guild/stacks',
      plugin: { apparatus: createStacks({ backend, onWarning: (w) => console.error(w.message, w.error) }) },
    },
    { package: 'member-kit', plugin: { kit: { requires: ['fabricator'], engines: { step } } } },
  ],
})
const w = createWork({
  backend: isPostgres
    ? postgresBackend({ connectionString: url, schema: workAddress })
    : sqliteBackend({ file: workAddress }),
  work: [spider().engineWork],
  visibility: LEASE_MS,
  onError: (error) => console.error(error),
})
/** @type {import('millrace/guild/spider').SpiderApi} */
spider().start({ work: w })

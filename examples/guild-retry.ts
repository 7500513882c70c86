// Writs with dependencies, executed by rigs of engines. One of them fails and is retried by itself; one cannot be done at all, and
// who depends on it is told why. It needs no server. Run it with: npx tsx examples/guild-retry.ts
import { createWork, NonRetryableError } from 'millrace'
import { createGuild, guild, type PluginSource } from 'millrace/guild'
import type { ClerkApi, WritDoc } from 'millrace/guild/clerk'
import { type ClockworksRetryApi, createClockworksRetry, type RetryDescription } from 'millrace/guild/clockworks-retry'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { RigDoc, SpiderApi, SpiderWritStatus } from 'millrace/guild/spider'
import type { ChangeEvent, StacksApi } from 'millrace/guild/stacks'

/** Two designs: the oven is cold when the rye comes for the first time, and nobody can bake a stone. */
let isOvenCold = true
const engines: Record<string, EngineDesign> = {
  knead: { id: 'knead', run: async ({ what }) => ({ status: 'completed', yields: { dough: `${what} dough` } }) },
  bake: {
    id: 'bake',
    run: async ({ dough }) => {
      if (dough === 'rye dough' && isOvenCold) {
        isOvenCold = false
        throw new Error('the oven is cold')
      }
      if (dough === 'stone dough') throw new NonRetryableError('a stone is no bread')
      return { status: 'completed', yields: { bread: String(dough).replace('dough', 'bread') } }
    },
  },
}

/** In `guild.json` one writes `${writ.title}`; here that would look like a slip of the keyboard. */
const expression = (path: string): string => `$\{${path}}`

/** Tells of every step of a writ after it was committed, with what Spider observed. */
const teller: PluginSource = {
  package: 'teller-apparatus',
  plugin: {
    apparatus: {
      requires: ['stacks', 'clerk'],
      start: () => {
        const stacks = guild().apparatus<StacksApi>('stacks')
        const onChange = (event: ChangeEvent<WritDoc>) => {
          if (event.type !== 'update' || event.prev.phase === event.entry.phase) return
          const { entry, prev } = event
          const { retryable } = (entry.status?.['spider'] ?? {}) as SpiderWritStatus
          const flag = entry.phase === 'stuck' && retryable !== undefined ? `, retryable: ${retryable}` : ''
          console.log(`${entry.title}: ${prev.phase} → ${entry.phase} (${nameless(entry.resolution ?? '')}${flag})`)
        }
        stacks.watch<WritDoc>('clerk', 'writs', onChange, { failOnError: false })
      },
    },
  },
}

/** The retry as it comes, but for somebody who listens to its decisions. */
const retrying: PluginSource = {
  package: 'millrace/guild/clockworks-retry',
  plugin: createClockworksRetry({
    onDecision: ({ decision, reason }: RetryDescription) =>
      console.log(`  the retry decided to ${decision}: ${reason}`),
  }),
}

const g = await createGuild({
  config: {
    plugins: ['stacks', 'clerk', 'fabricator', 'spider'],
    stacks: { backend: 'memory' },
    spider: {
      rigTemplates: {
        bread: {
          engines: [
            { id: 'dough', designId: 'knead', givens: { what: expression('writ.title') } },
            { id: 'oven', designId: 'bake', upstream: ['dough'], givens: { dough: expression('yields.dough.dough') } },
          ],
        },
      },
      rigTemplateMappings: { mandate: 'bread' },
    },
  },
  plugins: [{ package: 'bakery-kit', plugin: { kit: { engines } } }, teller, retrying],
})
const clerk = g.apparatus<ClerkApi>('clerk')
const spider = g.apparatus<SpiderApi>('spider')
const retry = g.apparatus<ClockworksRetryApi>('clockworks-retry')

const post = (title: string) => clerk.post({ title, body: '' })
const follows = (a: WritDoc, b: WritDoc) => clerk.link(a.id, b.id, 'follows', 'spider.follows')
const rye = await post('rye')
const sandwich = await post('sandwich')
const stone = await post('stone')
const soup = await post('soup')
await follows(sandwich, rye)
await follows(soup, stone)

// Every engine run is an item of a work system; with a backend that processes share, on any of them.
const w = createWork({ work: [spider.engineWork] })
const running = spider.start({ work: w })
while ((await clerk.count({ phase: 'completed' })) < 2 || (await clerk.count({ phase: 'stuck' })) < 1) {
  await new Promise((resolve) => setTimeout(resolve, 5))
}
await clerk.transition(stone.id, 'failed', { resolution: 'given up by a person' })
while ((await clerk.count({ phase: 'stuck' })) < 1) await new Promise((resolve) => setTimeout(resolve, 5))

console.log('\nWhy:')
for (const writ of [rye, sandwich, stone, soup]) {
  const { phase, resolution = '' } = await clerk.show(writ.id)
  const { attempts, cap, reason } = await retry.describe(writ.id)
  console.log(`  ${writ.title} is ${phase} after ${attempts} of at most ${cap} rigs: ${nameless(resolution)}`)
  for (const rig of await rigsOf(writ)) {
    const engines = rig.engines.map(({ id, status, error }) => `${id} ${status}${error ? ` (${error})` : ''}`)
    console.log(`    rig ${rig.attempt} is ${rig.status}: ${engines.join(', ')}`)
  }
  if (phase === 'stuck') console.log(`    No retry: ${reason}`)
}
await running.stop()
await w.stop()
await g.shutdown()

/** The attempts at a writ, the first one first. */
async function rigsOf({ id }: WritDoc): Promise<RigDoc[]> {
  return (await spider.list()).filter(({ writId }) => writId === id).reverse()
}

/** Ids are new in every run. */
function nameless(text: string): string {
  return text.replace(/w-[0-9a-z]+(-[0-9a-f]+)?/g, 'w-…')
}

// A worker as the guide shows it: it keeps its process alive by nothing else than spider.start(). Its engine takes long in the
// first process that runs it, which is killed meanwhile, and no time in the next.
// Usage: worker.mjs <file of documents> <file of work> <log> <ms of the run> <keepAlive>
import { appendFileSync } from 'node:fs'
import { createWork } from 'millrace'
import { createGuild } from 'millrace/guild'
import { createStacks, sqliteStacks } from 'millrace/guild/stacks'
import { sqliteBackend } from 'millrace/sqlite'

const [, , documents = '', work = '', log = '', runMs = '', keepAlive = ''] = process.argv

const bake = {
  id: 'bake',
  run: async () => {
    appendFileSync(log, 'begun\n')
    await new Promise((resolve) => setTimeout(resolve, Number(runMs)))
    return /** @type {const} */ ({ status: 'completed', yields: {} })
  },
}

const g = await createGuild({
  config: {
    plugins: ['clerk', 'fabricator', 'spider'],
    spider: {
      rigTemplates: { bread: { engines: [{ id: 'oven', designId: 'bake' }] } },
      rigTemplateMappings: { mandate: 'bread' },
    },
  },
  plugins: [
    {
      package: 'millrace/guild/stacks',
      plugin: { apparatus: createStacks({ backend: sqliteStacks({ file: documents }) }) },
    },
    { package: 'oven-kit', plugin: { kit: { engines: { bake } } } },
  ],
})
/** @type {import('millrace/guild/spider').SpiderApi} */
const spider = g.apparatus('spider')
/** @type {import('millrace/guild/clerk').ClerkApi} */
const clerk = g.apparatus('clerk')
if ((await clerk.count()) === 0) await clerk.post({ title: 'A loaf', body: '' })
const w = createWork({ backend: sqliteBackend({ file: work }), work: [spider.engineWork], visibility: 3_000 })
spider.start({ work: w, keepAlive: keepAlive === 'true' })

// A guild whose only engine always fails, and that can be killed at each step between the stuck commit and the end of the retry: for
// the process that is killed, and for the one that comes after it.
import { createGuild, guild } from 'millrace/guild'
import { createClockworksRetry } from 'millrace/guild/clockworks-retry'
import { createStacks } from 'millrace/guild/stacks'

/** @param {import('millrace/guild/stacks').ChangeEvent<import('millrace/guild/clerk').WritDoc>} event */
const change = (event) => (event.type === 'update' ? `${event.prev.phase}→${event.entry.phase}` : event.type)

/**
 * Posts a writ if there is none, and works until its second rig has failed and nothing is left to tell.
 * @param {import('millrace/guild/stacks').StacksBackend} backend
 * @param {(step: string) => void} reached Is told of every step, before the next one.
 */
export async function failTwice(backend, reached = () => undefined) {
  const { outbox } = backend
  const { read, advance } = outbox
  let hasRead = false
  outbox.read = async (...args) => {
    const entries = await read.apply(outbox, args)
    hasRead = entries.some(({ event }) => change(/** @type {never} */ (event)) === 'open→stuck')
    if (hasRead) reached('with the event read and not handled')
    return entries
  }
  outbox.advance = async (...args) => {
    if (hasRead) reached('with the event handled and its progress not stored')
    const isStored = await advance.apply(outbox, args)
    if (hasRead) reached('with its progress stored')
    return isStored
  }

  const killer = {
    requires: ['stacks', 'clerk'],
    start() {
      /** @type {import('millrace/guild/stacks').StacksApi} */
      const stacks = guild().apparatus('stacks')
      stacks.watch('clerk', 'writs', (event) => reached(`before the commit of ${change(/** @type {never} */ (event))}`))
      stacks.watch(
        'clerk',
        'writs',
        (event) => reached(`after the commit of ${change(/** @type {never} */ (event))}`),
        {
          failOnError: false,
        },
      )
    },
  }
  const engines = {
    boom: {
      id: 'boom',
      run: async () => {
        throw new Error('boom')
      },
    },
  }
  const g = await createGuild({
    strict: true,
    config: {
      plugins: ['clerk', 'fabricator', 'spider'],
      stacks: { watcherLeaseMs: 200 },
      spider: {
        rigTemplates: { standard: { engines: [{ id: 'boom', designId: 'boom' }] } },
        rigTemplateMappings: { mandate: 'standard' },
        engineLeaseMs: 200,
      },
    },
    plugins: [
      { package: 'millrace/guild/stacks', plugin: { apparatus: createStacks({ backend }) } },
      { package: 'boom-kit', plugin: { kit: { engines } } },
      { package: 'killer-apparatus', plugin: { apparatus: killer } },
      {
        package: 'millrace/guild/clockworks-retry',
        plugin: createClockworksRetry({ onDecision: ({ decision }) => reached(`after the decision to ${decision}`) }),
      },
    ],
  })
  /** @type {import('millrace/guild/clerk').ClerkApi} */
  const clerk = g.apparatus('clerk')
  /** @type {import('millrace/guild/spider').SpiderApi} */
  const spider = g.apparatus('spider')
  if ((await clerk.count()) === 0) await clerk.post({ title: 'a', body: '' })
  /** @type {import('millrace/guild/stacks').Stacks} */
  const stacks = g.apparatus('stacks')
  // The watcher of a process that was killed is another's after its lease; the engine too. It is over when the second rig has
  // failed and every event has been told; whatever came after that would come now.
  for (let rest = 0; rest < 3; ) {
    const isIdle = (await spider.crawl()) === null
    const isOver = (await spider.list()).length >= 2 && (await stacks.watchers()).every(({ behind }) => behind === 0)
    rest = isIdle && isOver ? rest + 1 : 0
    if (isIdle) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const [writ] = await clerk.list()
  const rigs = (await spider.list()).map(({ status }) => status)
  await g.shutdown()
  return { phase: writ?.phase, rigs }
}

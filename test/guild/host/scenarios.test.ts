import { clearGuild, createGuild, guild, type LoadedApparatus, type PluginSource } from 'millrace/guild'
import { FakeClock } from 'millrace/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kit, part } from './plugins.js'

// Guilds that tests in other files have left running are not the guild of these.
beforeEach(clearGuild)

const running: { shutdown(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.shutdown().catch(() => undefined)
})

async function started(...plugins: readonly PluginSource[]) {
  const g = await createGuild({ plugins })
  running.push(g)
  return g
}

const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id)

describe('the host', () => {
  // 1
  it('starts what is required first, and reports each start and the whole', async () => {
    const story: string[] = []
    const watcher = part('watcher', story, {
      start: (ctx) => {
        ctx.on('apparatus:started', (loaded: LoadedApparatus) => void story.push(`started ${loaded.id}`))
        ctx.on('phase:started', () => void story.push('phase'))
      },
    })
    const g = await started(watcher, part('a', story, { requires: ['b'] }), part('b', story))

    expect(ids(g.apparatuses())).toEqual(['watcher', 'b', 'a'])
    expect(story).toEqual(['start watcher', 'started watcher', 'start b', 'started b', 'start a', 'started a', 'phase'])
  })

  // 2
  it('leaves out what needs something missing, and all that needs it, and goes on', async () => {
    const story: string[] = []
    const g = await started(
      part('a', story, { requires: ['ghost'] }),
      part('c', story, { requires: ['a'] }),
      part('d', story),
    )

    expect(ids(g.apparatuses())).toEqual(['d'])
    expect(g.failedPlugins()).toEqual([
      { id: 'a', reason: 'requires "ghost", which is not installed' },
      { id: 'c', reason: 'depends on "a", which failed' },
    ])
    expect(g.apparatus('d')).toEqual({ name: 'd' })
    expect(() => g.apparatus('a')).toThrow('There is no API of "a": it requires "ghost", which is not installed')
    expect(g.tryApparatus('a')).toBeNull()
    expect(story).toEqual(['start d'])
  })

  // 3
  it('fails every member of a cycle, and what depends on one', async () => {
    const story: string[] = []
    const g = await started(
      part('a', story, { requires: ['b'] }),
      part('b', story, { requires: ['a'] }),
      part('c', story, { requires: ['a'] }),
    )

    expect(g.apparatuses()).toEqual([])
    expect(g.failedPlugins()).toEqual([
      { id: 'a', reason: 'is part of a circular chain of requires: a → b → a' },
      { id: 'b', reason: 'is part of a circular chain of requires: b → a → b' },
      { id: 'c', reason: 'depends on "a", which failed' },
    ])
    expect(story).toEqual([])
  })

  // 4
  it('fails a kit that requires a kit, and keeps the other', async () => {
    const g = await started(kit('k', { requires: ['l'] }), kit('l', {}))

    expect(ids(g.kits())).toEqual(['l'])
    expect(g.failedPlugins()).toEqual([
      { id: 'k', reason: 'requires "l", which is a kit: a kit may require apparatuses only' },
    ])
  })

  // 5
  it('warns of what no plugin consumes and of what is recommended and absent', async () => {
    const g = await started(kit('k', { relays: {}, recommends: ['clockworks'] }))

    expect(g.startupWarnings()).toEqual([
      '"k" recommends "clockworks", which is not an installed apparatus.',
      '"k" contributes "relays", which no installed apparatus consumes.',
    ])
    expect(ids(g.kits())).toEqual(['k'])
  })

  // 6
  it('waits for a start that takes time', async () => {
    const clock = new FakeClock()
    let isReady = false
    const seen: boolean[] = []
    const starting = createGuild({
      clock,
      plugins: [
        part('b', [], { requires: ['a'], start: () => void seen.push(isReady) }),
        part('a', [], {
          start: async (ctx) => {
            await ctx.clock.sleep(20)
            isReady = true
          },
        }),
      ],
    })
    await clock.advance(20)
    running.push(await starting)

    expect(seen).toEqual([true])
  })

  // 7
  it('stops in reverse order whatever fails, throws once, and is then gone', async () => {
    const story: string[] = []
    const failing = { stop: () => Promise.reject(new Error('stuck valve')) }
    const g = await createGuild({ plugins: [part('a', story), part('b', story, failing), part('c', story)] })
    story.length = 0

    await expect(g.shutdown()).rejects.toMatchObject({
      code: 'SHUTDOWN_FAILED',
      failures: [{ id: 'b', error: expect.objectContaining({ message: 'stuck valve' }) }],
    })
    expect(story).toEqual(['stop c', 'stop b', 'stop a'])
    await expect(g.shutdown()).resolves.toBeUndefined()
    expect(() => guild()).toThrow(expect.objectContaining({ code: 'NO_GUILD' }))
  })
})

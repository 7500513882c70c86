import { type Apparatus, clearGuild, createGuild, guild, type Plugin, runWithGuild, setGuild } from 'millrace/guild'
import { FakeClock, seededRandom } from 'millrace/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kit, part } from './plugins.js'

beforeEach(clearGuild)
afterEach(clearGuild)

const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id)

describe('guild()', () => {
  it('throws before there is one, and says where not to call it', () => {
    expect(() => guild()).toThrow(/never at the top level of a module/)
  })

  it('is the one of the process, and in a start its own', async () => {
    let inStart: unknown
    const g = await createGuild({
      plugins: [
        part('a', [], {
          start: () => {
            inStart = guild()
          },
        }),
      ],
    })

    expect(inStart).toBe(g)
    expect(guild()).toBe(g)
    await g.shutdown()
    expect(() => guild()).toThrow()
  })

  it('can be set and cleared by a test', async () => {
    const g = await createGuild({ plugins: [part('a', [])] })
    await g.shutdown()
    setGuild(g)
    expect(guild()).toBe(g)
    clearGuild()
    expect(() => guild()).toThrow()
  })
})

describe('several guilds in one process', () => {
  it('each are found in their own context, also after awaits, in events and while stopping', async () => {
    const seen: string[] = []
    const clock = new FakeClock()
    const one = (name: string) => ({
      config: { name },
      clock,
      plugins: [
        part('a', [], {
          start: async (ctx) => {
            ctx.on('phase:started', () => void seen.push(`${name} phase: ${guild().guildConfig().name}`))
            ctx.on('guild:shutdown', () => void seen.push(`${name} shutdown: ${guild().guildConfig().name}`))
            setImmediate(() => void seen.push(`${name} timer: ${guild().guildConfig().name}`))
            await ctx.clock.sleep(5)
            seen.push(`${name} start: ${guild().guildConfig().name}`)
          },
          stop: () => void seen.push(`${name} stop: ${guild().guildConfig().name}`),
        }),
      ],
    })
    const starting = Promise.all([createGuild(one('north')), createGuild(one('south'))])
    await clock.advance(5)
    const [north, south] = await starting
    await new Promise((resolve) => setImmediate(resolve))

    expect(runWithGuild(north, () => guild())).toBe(north)
    expect(await runWithGuild(south, async () => Promise.resolve().then(() => guild()))).toBe(south)
    await north.shutdown()
    expect(guild()).toBe(south)
    await south.shutdown()
    expect(seen.sort()).toEqual(
      ['north', 'south'].flatMap((name) =>
        ['phase', 'shutdown', 'start', 'stop', 'timer'].map((when) => `${name} ${when}: ${name}`),
      ),
    )
  })

  it('leave guild() to the one before when they end or fail', async () => {
    const [one, two] = [
      await createGuild({ plugins: [part('a', [])] }),
      await createGuild({ plugins: [part('a', [])] }),
    ]
    expect(guild()).toBe(two)
    const bad = part('b', [], {
      start: () => {
        throw new Error('no')
      },
    })
    await expect(createGuild({ plugins: [bad] })).rejects.toThrow('no')
    expect(guild()).toBe(two)
    await two.shutdown()
    expect(guild()).toBe(one)
    await one.shutdown()
    expect(() => guild()).toThrow()
  })

  it('stop an apparatus whose provides fails once it has started', async () => {
    const story: string[] = []
    let reads = 0
    const apparatus: Apparatus = {
      start: () => void story.push('start a'),
      stop: () => void story.push('stop a'),
      get provides() {
        reads += 1
        throw new Error(`read ${reads}`)
      },
    }
    await expect(createGuild({ plugins: [{ package: 'a', plugin: { apparatus } }] })).rejects.toThrow('read')
    expect(story).toEqual(['start a', 'stop a'])
  })

  it('share nothing of a plugin that makes a new apparatus each time it is asked', async () => {
    const plugin: Plugin = {
      get apparatus() {
        const provides = { count: 0 }
        return {
          provides,
          start: () => {
            provides.count += 1
          },
        }
      },
    }
    const [first, second] = await Promise.all([
      createGuild({ plugins: [{ package: 'counter', plugin }] }),
      createGuild({ plugins: [{ package: 'counter', plugin }] }),
    ])

    expect(first.apparatus('counter')).toEqual({ count: 1 })
    expect(first.apparatus('counter')).not.toBe(second.apparatus('counter'))
    await first.shutdown()
    await second.shutdown()
  })
})

describe('a start that fails', () => {
  it('is undone in reverse order and thrown as it is, with what failed on the way attached', async () => {
    const story: string[] = []
    const original = new Error('no water')
    const failing = createGuild({
      plugins: [
        part('a', story, { stop: () => Promise.reject(new Error('a sticks')) }),
        part('b', story),
        part('c', story, { start: () => Promise.reject(original) }),
        part('d', story),
      ],
    })

    await expect(failing).rejects.toBe(original)
    expect(story).toEqual(['start a', 'start b', 'start c', 'stop b', 'stop a'])
    expect((original as { suppressed?: unknown }).suppressed).toEqual([
      { id: 'a', error: expect.objectContaining({ message: 'a sticks' }) },
    ])
    expect(() => guild()).toThrow()
  })

  it('may be that of a handler', async () => {
    const story: string[] = []
    const failing = createGuild({
      plugins: [
        part('a', story, {
          start: (ctx) =>
            ctx.on('phase:started', () => {
              throw new Error('no default')
            }),
        }),
      ],
    })

    await expect(failing).rejects.toThrow('no default')
    expect(story).toEqual(['start a', 'stop a'])
  })
})

describe('a strict guild', () => {
  it('does not start when a plugin fails, and lists every reason', async () => {
    const story: string[] = []
    const failing = createGuild({
      strict: true,
      plugins: [part('a', story, { requires: ['x'] }), kit('k', { requires: ['a'] }), part('d', story)],
    })

    await expect(failing).rejects.toMatchObject({
      code: 'PLUGINS_FAILED',
      message:
        '2 of the plugins cannot be used: "a" requires "x", which is not installed; "k" depends on "a", which failed.',
      failures: [{ id: 'a' }, { id: 'k' }],
    })
    expect(story).toEqual([])
  })
})

describe('the order', () => {
  it('puts what is recommended first, unless that makes a cycle', async () => {
    const g = await createGuild({
      plugins: [
        part('a', [], { recommends: ['c', 'missing'] }),
        part('b', []),
        part('c', [], { recommends: ['a'] }),
        part('d', [], { requires: ['c'] }),
      ],
    })

    expect(ids(g.apparatuses())).toEqual(['c', 'a', 'b', 'd'])
    await g.shutdown()
  })
})

describe('what an apparatus is given', () => {
  it('has every contribution before the first start: kits in load order, then apparatuses in start order', async () => {
    const seen: unknown[] = []
    const g = await createGuild({
      plugins: [
        part('late', [], { requires: ['reader'], supportKit: { tools: 3, requires: [], recommends: [] } }),
        part('reader', [], {
          consumes: ['tools'],
          supportKit: { tools: 2 },
          start: (ctx) => {
            ctx.kits('tools').length = 0 // A fresh array: this does no harm.
            seen.push(...ctx.kits('tools'), ...ctx.kits('requires'))
          },
        }),
        kit('@acme/one-kit', { tools: 1 }),
      ],
    })

    expect(seen).toEqual([
      { pluginId: 'acme/one', packageName: '@acme/one-kit', type: 'tools', value: 1 },
      { pluginId: 'reader', packageName: 'reader', type: 'tools', value: 2 },
      { pluginId: 'late', packageName: 'late', type: 'tools', value: 3 },
    ])
    expect(g.startupWarnings()).toEqual([])
    await g.shutdown()
  })

  it('has the time and the chance of the guild', async () => {
    const clock = new FakeClock()
    const random = seededRandom(1)
    let seen: unknown
    const g = await createGuild({
      clock,
      random,
      plugins: [
        part('a', [], {
          start: (ctx) => {
            seen = [ctx.clock, ctx.random]
          },
        }),
      ],
    })

    expect(seen).toEqual([clock, random])
    await g.shutdown()
  })
})

describe('the API of an apparatus', () => {
  it('may come late, by a getter', async () => {
    let api: object | undefined
    const plugin: Plugin = {
      apparatus: {
        get provides() {
          return api
        },
        start: () => {
          api = { late: true }
        },
      },
    }
    const g = await createGuild({ plugins: [{ package: 'late', plugin }] })

    expect(g.apparatus('late')).toEqual({ late: true })
    await g.shutdown()
  })

  it('is missing for a reason', async () => {
    let early: unknown
    const g = await createGuild({
      plugins: [
        part('a', [], {
          start: () => {
            try {
              guild().apparatus('b')
            } catch (error) {
              early = error
            }
          },
        }),
        part('b', []),
        part('mute', [], { provides: undefined }),
        kit('k', {}),
      ],
    })

    expect(early).toMatchObject({ code: 'NO_APPARATUS', message: expect.stringContaining('has not started yet') })
    expect(() => g.apparatus('mute')).toThrow('it has started, but provides none')
    expect(() => g.apparatus('k')).toThrow('it is a kit')
    expect(() => g.apparatus('missing')).toThrow('no such plugin is loaded')
    await g.shutdown()
    expect(() => g.apparatus('b')).toThrow('it has been stopped')
    expect(g.tryApparatus('b')).toBeNull()
    expect(g.apparatuses()).toEqual([])
  })
})

describe('a shutdown', () => {
  it('notifies all first, and stops everything though a handler throws', async () => {
    const story: string[] = []
    const g = await createGuild({
      plugins: [
        part('a', story, {
          start: (ctx) => {
            ctx.on('guild:shutdown', () => Promise.reject(new Error('deaf')))
            ctx.on('guild:shutdown', () => void story.push('notified'))
          },
        }),
      ],
    })

    await expect(g.shutdown()).rejects.toMatchObject({ failures: [{ id: 'a' }] })
    expect(story).toEqual(['start a', 'notified', 'stop a'])
  })

  it('asked for by a stop does not wait for itself', async () => {
    const g = await createGuild({ plugins: [part('a', [], { stop: () => guildHere().shutdown() })] })
    const guildHere = () => g

    await expect(g.shutdown()).resolves.toBeUndefined()
  })
})

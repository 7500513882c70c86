import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGuild, type PluginSource, type StartedGuild, type StartupContext } from 'millrace/guild'
import stacksPlugin, {
  createStacks,
  MemorySpace,
  memoryStacks,
  openStacks,
  type StacksApi,
} from 'millrace/guild/stacks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const stacks: PluginSource = { package: 'millrace/guild/stacks', plugin: stacksPlugin }
const inMemory = { stacks: { backend: 'memory' } } as const

/** A plugin that owns a book and watches it. */
function shop(start: (api: StacksApi, g: StartedGuild) => void | Promise<void> = () => undefined): PluginSource {
  return {
    package: 'shop',
    plugin: {
      apparatus: {
        requires: ['stacks'],
        supportKit: { books: { orders: { indexes: ['status'] } } },
        async start() {
          const { guild } = await import('millrace/guild')
          await start(guild().apparatus<StacksApi>('stacks'), guild() as StartedGuild)
        },
      },
    },
  }
}

describe('Stacks in a guild', () => {
  let home: string
  const started: StartedGuild[] = []
  const start = async (options: Parameters<typeof createGuild>[0]) => {
    const g = await createGuild({ root: home, strict: true, ...options })
    started.push(g)
    return g
  }
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'millrace-guild-'))
  })
  afterEach(async () => {
    for (const g of started.splice(0)) await g.shutdown()
    rmSync(home, { recursive: true })
  })

  it('starts beside a process with other watchers where guild.json allows it, with a warning', async () => {
    const watching = shop((stacks) => stacks.watch('shop', 'orders', () => undefined))
    const options = (differentWatchers?: 'allow') => ({
      config: {
        plugins: ['stacks'],
        stacks: { file: 'shared.sqlite', ...(differentWatchers && { differentWatchers }) },
      },
    })
    await start({ ...options(), plugins: [watching] })
    await expect(start(options())).rejects.toMatchObject({
      code: 'WATCHER_MISMATCH',
      message: expect.stringMatching(/differentWatchers: 'allow' \(under `stacks` in guild\.json\).*guildClient/),
    })
    const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
    await start(options('allow'))
    expect((await warned).code).toBe('WATCHERS_DIFFER')
    await expect(start(options('maybe' as 'allow'))).rejects.toThrow('stacks.differentWatchers')
  })

  it.each([
    [
      { connectionString: 'postgres://localhost/shop' },
      /connectionString must be absent.*postgres.*sqlite \(the default\)/,
    ],
    [
      { backend: 'postgres', connectionString: 'postgres://localhost/shop', file: 'a.db' },
      /stacks.file must be absent/,
    ],
    [{ backend: 'memory', file: 'a.db' }, /the backend is memory \(given\)/],
  ] as const)(
    'refuses what belongs to another backend, instead of keeping documents elsewhere: %j',
    async (config, message) => {
      await expect(start({ config: { plugins: ['stacks'], stacks: config } })).rejects.toThrow(message)
      expect(existsSync(join(home, 'stacks.sqlite'))).toBe(false)
    },
  )

  it('has the id stacks and makes the books that plugins contribute', async () => {
    const g = await start({ config: inMemory, plugins: [stacks, shop()] })
    const orders = g.apparatus<StacksApi>('stacks').book('shop', 'orders')
    await orders.put({ id: 'o-1' })
    expect(await orders.count()).toBe(1)
    await expect(g.apparatus<StacksApi>('stacks').book('shop', 'bills').put({ id: 'b' })).rejects.toMatchObject({
      code: 'UNKNOWN_BOOK',
    })
  })

  // S21
  it('accepts watchers until phase:started, also after a write', async () => {
    const seen: string[] = []
    const g = await start({
      config: inMemory,
      plugins: [
        stacks,
        shop(async (api) => {
          await api.book('shop', 'orders').put({ id: 'early' })
          api.watch('shop', 'orders', (event) => void seen.push(event.type))
        }),
      ],
    })
    const api = g.apparatus<StacksApi>('stacks')
    expect(() => api.watch('shop', 'orders', () => undefined)).toThrow(/startup/)
    await api.book('shop', 'orders').put({ id: 'late' })
    expect(seen).toEqual(['create'])
  })

  it('keeps documents in the guild directory by default', async () => {
    writeFileSync(join(home, 'guild.json'), '{}')
    const first = await start({ config: {}, plugins: [stacks, shop()] })
    await first.apparatus<StacksApi>('stacks').book('shop', 'orders').put({ id: 'o-1' })
    await started.pop()!.shutdown()
    expect(existsSync(join(home, 'stacks.sqlite'))).toBe(true)
    const second = await start({ config: {}, plugins: [stacks, shop()] })
    expect(await second.apparatus<StacksApi>('stacks').book('shop', 'orders').list()).toEqual([{ id: 'o-1' }])
  })

  it('makes nothing with autoMigrate: false', async () => {
    const space = new MemorySpace()
    const plugin = { apparatus: createStacks({ backend: memoryStacks({ space }) }) }
    const g = await start({
      config: { stacks: { autoMigrate: false } },
      plugins: [{ package: 'millrace/guild/stacks', plugin }, shop()],
    })
    const put = g.apparatus<StacksApi>('stacks').book('shop', 'orders').put({ id: 'o-1' })
    await expect(put).rejects.toMatchObject({ code: 'UNKNOWN_BOOK' })
  })

  it('refuses a configuration that means nothing', async () => {
    const bad = [{ backend: 'mongo' }, { backend: 'postgres' }, { fiel: 'x' }, { watcherLeaseMs: 1 }]
    for (const config of bad)
      await expect(createGuild({ root: home, config: { stacks: config }, plugins: [stacks] })).rejects.toMatchObject({
        code: 'BAD_OPTION',
      })
  })

  describe('durable watchers', () => {
    /** A plugin whose handler needs what its `stop` takes away. */
    const mill = (log: string[], rest: { ready?: () => Promise<void>; handler?: () => Promise<void> } = {}) => ({
      package: 'mill',
      plugin: {
        apparatus: {
          requires: ['stacks'],
          supportKit: { books: { sacks: {} } },
          async start(ctx: StartupContext) {
            const { guild } = await import('millrace/guild')
            let isOpen = true
            guild()
              .apparatus<StacksApi>('stacks')
              .watch<{ id: string }>(
                'mill',
                'sacks',
                async (event) => {
                  await rest.handler?.()
                  if (!isOpen) throw new Error('the mill is closed')
                  if (event.type !== 'delete') log.push(event.entry.id)
                },
                { durable: 'mill' },
              )
            ctx.on('phase:started', async () => {
              await rest.ready?.()
              log.push('ready')
            })
            this.stop = async () => {
              isOpen = false
              for (let n = 0; n < 20; n += 1) await turn()
            }
          },
          stop: async (): Promise<void> => undefined,
        },
      },
    })
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
    const store = (space: MemorySpace, warnings: unknown[]): PluginSource => ({
      package: 'millrace/guild/stacks',
      plugin: {
        apparatus: createStacks({ backend: memoryStacks({ space }), onWarning: (warning) => warnings.push(warning) }),
      },
    })

    it('lose no event to a shutdown: what was not delivered before the first stop is delivered after the next start', async () => {
      const [space, log, warnings] = [new MemorySpace(), [] as string[], [] as unknown[]]
      const guildOf = () => start({ config: {}, plugins: [store(space, warnings), mill(log, { handler: turn })] })
      const g = await guildOf()
      const sacks = g.apparatus<StacksApi>('stacks').book('mill', 'sacks')
      const names = Array.from({ length: 10 }, (_, n) => `s${n}`)
      const writes = names.map((id) => sacks.put({ id }))
      while (log.length < 3) await turn()
      await g.shutdown()
      await Promise.all(writes)
      expect(log.length).toBeLessThan(11)
      await guildOf()
      while (space.outbox.length > 0) await turn()
      expect(warnings).toEqual([])
      expect(log.filter((line) => line !== 'ready')).toEqual(names)
    })

    it('get no event before the last handler of phase:started has ended', async () => {
      const [space, log] = [new MemorySpace(), [] as string[]]
      const slowly = async () => {
        for (let n = 0; n < 20; n += 1) await turn()
      }
      const guildOf = () => start({ config: {}, plugins: [store(space, []), mill(log, { ready: slowly })] })
      await (await guildOf()).shutdown()
      const writer = await openStacks({ backend: memoryStacks({ space }) })
      await writer.book('mill', 'sacks').put({ id: 'left by a crash' })
      await writer.close()
      log.length = 0
      await guildOf()
      while (space.outbox.length > 0) await turn()
      expect(log).toEqual(['ready', 'left by a crash'])
    })

    it('get no event while a start that failed is undone', async () => {
      const [space, log, warnings] = [new MemorySpace(), [] as string[], [] as unknown[]]
      const late: PluginSource = {
        package: 'late',
        plugin: {
          apparatus: {
            requires: ['mill'],
            start: (ctx: StartupContext) =>
              ctx.on('guild:ready', async () => {
                const { guild } = await import('millrace/guild')
                const sacks = guild().apparatus<StacksApi>('stacks').book('mill', 'sacks')
                void Promise.all(['a', 'b', 'c'].map((id) => sacks.put({ id })))
                while (log.length < 2) await turn()
                throw new Error('too late')
              }),
          },
        },
      }
      const plugins = [store(space, warnings), mill(log, { handler: turn }), late]
      await expect(start({ config: {}, plugins })).rejects.toThrow('too late')
      expect(warnings).toEqual([])
      expect(log.length - 1 + space.outbox.length).toBeGreaterThanOrEqual(3)
    })
  })

  it('gives two guilds two stores', async () => {
    const [one, two] = [
      await start({ config: inMemory, plugins: [stacks, shop()] }),
      await start({ config: inMemory, plugins: [stacks, shop()] }),
    ]
    await one.apparatus<StacksApi>('stacks').book('shop', 'orders').put({ id: 'o-1' })
    expect(await two.apparatus<StacksApi>('stacks').book('shop', 'orders').count()).toBe(0)
  })
})

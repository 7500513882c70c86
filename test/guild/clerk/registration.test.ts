import { guild, type PluginSource } from 'millrace/guild'
import type { ClerkApi, WritTypeConfig } from 'millrace/guild/clerk'
import { describe, expect, it } from 'vitest'
import { type ClerkGuild, type ClerkGuildOptions, clerkGuild, onMemory } from '../grounds.js'
import { kit, part } from '../host/plugins.js'
import { TASK, typesPlugin } from './machines.js'

async function during<R>(options: ClerkGuildOptions, inspect: (started: ClerkGuild) => R | Promise<R>): Promise<R> {
  const started = await clerkGuild(await onMemory.open(), options)
  try {
    return await inspect(started)
  } finally {
    await started.g.shutdown()
  }
}

const refused = (...plugins: readonly PluginSource[]) => expect(during({ plugins }, () => undefined)).rejects

describe('types of writs', () => {
  it('are registered while the guild starts, once, and not later', async () => {
    await during({ plugins: [typesPlugin(TASK)] }, ({ clerk }) => {
      expect(clerk.getWritTypeConfig('task')).toEqual(TASK)
      expect(() => clerk.registerWritType({ ...TASK, name: 'late' })).toThrow('comes too late')
      expect(() => clerk.getWritTypeConfig('late')).toThrow('Registered: mandate, task.')
    })
    await refused(typesPlugin(TASK, TASK)).toThrow('A writ type "task" is registered already.')
    await refused(typesPlugin({ ...TASK, name: '' })).toMatchObject({ code: 'BAD_WRIT_TYPE', path: 'name' })
  })

  it('are kept as they were registered, whatever their author does to them later', async () => {
    const type = structuredClone(TASK) as { states: { allowedTransitions: string[] }[] } & WritTypeConfig
    await during({ plugins: [typesPlugin(type)] }, async ({ clerk }) => {
      type.states[0]!.allowedTransitions.push('done')
      const { id } = await clerk.post({ title: 'x', body: '', type: 'task' })
      await expect(clerk.transition(id, 'done')).rejects.toThrow('Legal: doing.')
      expect(() => Object.assign(clerk.getWritTypeConfig('task').states[0]!, { name: 'x' })).toThrow(TypeError)
    })
  })

  it('say where a writ of them is', async () => {
    await during({ plugins: [typesPlugin(TASK)] }, ({ clerk }) => {
      const at = (type: string, phase: string) => {
        const writ = { type, phase }
        return [clerk.isInitial(writ), clerk.isActive(writ), clerk.isTerminal(writ)]
      }
      expect(at('mandate', 'new')).toEqual([true, false, false])
      expect(at('mandate', 'stuck')).toEqual([false, true, false])
      expect(at('task', 'dropped')).toEqual([false, false, true])
      expect(() => at('task', 'open')).toThrow('The type "task" has no phase "open"')
      expect(() => at('errand', 'open')).toThrow('"errand" is not registered')
    })
  })

  it('have a default, which must be there once everything has started', async () => {
    const config = { clerk: { defaultType: 'task' } }
    await during({ config, plugins: [typesPlugin(TASK)] }, async ({ clerk }) => {
      expect(await clerk.post({ title: 'x', body: '' })).toMatchObject({ type: 'task', phase: 'idea' })
    })
    await expect(during({ config }, () => undefined)).rejects.toThrow(
      'The default type of the Clerk "task" is not registered',
    )
  })

  it('may name the phase of a post that is no draft', async () => {
    await during({ plugins: [typesPlugin({ ...TASK, postTo: 'doing' })] }, async ({ clerk }) => {
      const post = (draft: boolean) => clerk.post({ title: 'x', body: '', type: 'task', draft })
      expect([(await post(false)).phase, (await post(true)).phase]).toEqual(['doing', 'idea'])
    })
  })
})

describe('the configuration of the Clerk', () => {
  it.each([
    [{ defaultTyp: 'task' }, 'Did you mean "defaultType"?'],
    [{ defaultType: 5 }, 'defaultType must be a non-empty string'],
    [{ strictCompletion: 'yes' }, 'strictCompletion must be true or false'],
  ])('%j fails the start', async (clerk, message) => {
    await expect(during({ config: { clerk } }, () => undefined)).rejects.toThrow(message)
  })
})

describe('kinds of links', () => {
  const kinds = (name: string, linkKinds: unknown) => kit(name, { linkKinds })

  it('come from kits and apparatuses', async () => {
    const plugins = [
      kinds('@acme/tools-kit', [{ id: 'acme/tools.part-of', description: 'is a part' }]),
      part('spider', [], { supportKit: { linkKinds: [{ id: 'spider.follows', description: 'waits' }] } }),
    ]
    await during({ plugins }, ({ clerk }) => {
      expect(clerk.listKinds()).toEqual([
        { id: 'acme/tools.part-of', ownerPlugin: 'acme/tools', description: 'is a part' },
        { id: 'spider.follows', ownerPlugin: 'spider', description: 'waits' },
      ])
    })
  })

  it('that are malformed, foreign or double fail the start', async () => {
    const bad = (id: unknown, description: unknown = 'x') => refused(kinds('spider', [{ id, description }]))
    for (const id of ['follows', 'clerk.follows', 'spider.', 'spider.Follows', 'spider.a_b', 'spider.a--b', 5]) {
      await bad(id).toThrow('must be called "spider." and a name in kebab-case')
    }
    await bad('spider.follows', '').toThrow('needs a description')
    await refused(kinds('spider', {})).toThrow('are no array')
    await refused(kinds('spider', [null])).toThrow('kebab-case')
    const twice = { id: 'spider.follows', description: 'x' }
    await refused(kinds('spider', [twice, twice])).toThrow('contributed twice')
  })
})

describe('two guilds with a Clerk in one process', () => {
  it('have their own writs, types and time', async () => {
    const [north, south] = [await onMemory.open(), await onMemory.open()]
    const one = await clerkGuild(north, { plugins: [typesPlugin(TASK)] })
    const two = await clerkGuild(south)
    const { id } = await one.clerk.post({ title: 'x', body: '', type: 'task' })
    expect(await two.clerk.count()).toBe(0)
    await expect(two.clerk.show(id)).rejects.toMatchObject({ code: 'WRIT_NOT_FOUND' })
    expect(() => two.clerk.getWritTypeConfig('task')).toThrow()
    expect(guild().apparatus<ClerkApi>('clerk')).toBe(two.clerk)
    await one.g.shutdown()
    expect(await two.clerk.count()).toBe(0)
    await two.g.shutdown()
  })
})

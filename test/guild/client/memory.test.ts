import { guildClient } from 'millrace/guild'
import { describe, expect, it } from 'vitest'
import { onMemory } from '../grounds.js'
import { describeGuildClient } from './client-suite.js'

describeGuildClient(onMemory)

describe('the options of guildClient', () => {
  it('are checked before anything is opened', async () => {
    // @ts-expect-error: a place is needed
    await expect(guildClient({})).rejects.toThrow('guildClient().stacks')
    await expect(guildClient({ stacks: { backend: 'postgres' } })).rejects.toThrow('stacks.connectionString')
    // @ts-expect-error: no such option
    await expect(guildClient({ stacks: { backend: 'memory' }, plugins: [] })).rejects.toThrow('plugins')
  })
})

import { memoryBackend } from 'millrace'
import { openOps } from 'millrace/ops'
import { expect, it } from 'vitest'
import { onMemory } from '../../guild/grounds.js'
import { describeGuildActs } from './act-suite.js'
import { describeEngineItems, describeGuildReads } from './guild-suite.js'

describeGuildReads(onMemory)
describeGuildActs(onMemory)
describeEngineItems(onMemory)

it('says what is missing where no store of documents was given', async () => {
  const ops = openOps(memoryBackend())
  for (const asked of [ops.writs(), ops.writ('w-1'), ops.rig('r-1')]) {
    await expect(asked).rejects.toMatchObject({ code: 'NOT_SUPPORTED', facts: { capability: 'stacks' } })
    await expect(asked).rejects.toThrow('openOps(backend, { stacks })')
  }
  // @ts-expect-error: a path is no store
  expect(() => openOps(memoryBackend(), { stacks: './stacks.sqlite' })).toThrow('openOps.stacks must be')
})

import { MemorySpace, memoryStacks, openStacks, type StacksWarning } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'

describe('processes with different phase-1 watchers', () => {
  const setting = () => {
    const [space, clock] = [new MemorySpace(), new FakeClock()]
    const open = (watched: readonly string[], differentWatchers: 'refuse' | 'allow', warnings: StacksWarning[] = []) =>
      openStacks({
        backend: memoryStacks({ space, clock }),
        clock,
        watcherLeaseMs: 300,
        differentWatchers,
        onWarning: (warning) => void warnings.push(warning),
      }).then((stacks) => {
        for (const book of watched) stacks.watch('o', book, () => undefined)
        return stacks
      })
    return { clock, open }
  }

  it('the first is warned, once, of one that came later and allows it', async () => {
    const { clock, open } = setting()
    const warnings: StacksWarning[] = []
    const first = await open(['a'], 'refuse', warnings)
    await first.seal()
    const second = await open(['b'], 'allow')
    await second.seal()
    for (let n = 0; n < 5; n += 1) await clock.advance(100)
    expect(warnings.map(({ code }) => code)).toEqual(['WATCHERS_DIFFER'])
    await second.close()
    await first.close()
  })

  it('a seal that was refused is no seal: it is refused again, and succeeds when the other has gone', async () => {
    const { open } = setting()
    const [first, second] = [await open(['a'], 'refuse'), await open(['b'], 'refuse')]
    await first.seal()
    await expect(second.seal()).rejects.toMatchObject({ code: 'WATCHER_MISMATCH' })
    await expect(second.seal()).rejects.toMatchObject({ code: 'WATCHER_MISMATCH' })
    await first.close()
    await second.seal()
    await second.close()
  })
})

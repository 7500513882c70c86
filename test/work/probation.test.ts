import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { Probation, type Suspicion } from '../../src/work/worker/crash-suspects.js'

/** An upper-case item has crashed before and begins by itself; the next crash would end a digit. */
function suspicionOf(name: string): Suspicion {
  if (/\d/.test(name)) return 'last chance'
  return name === name.toUpperCase() ? 'crashed' : 'lapsed'
}

/** Items that come one after the other. */
async function entering(names: string) {
  const clock = new FakeClock()
  const probation = new Probation(clock, 1_000)
  const begun: string[] = []
  const leaves = new Map<string, () => void>()
  for (const name of names) {
    void probation.enter(suspicionOf(name)).then((leave) => {
      begun.push(name)
      leaves.set(name, leave!)
    })
  }
  await clock.settle()
  const settle = async (name: string) => {
    leaves.get(name)?.()
    await clock.settle()
  }
  return { clock, begun, settle }
}

describe('items that were held when a process died', () => {
  it('begin together, but for those that may have crashed it', async () => {
    const { begun, settle } = await entering('abCd')
    expect(begun).toEqual(['a', 'b'])
    await settle('a')
    expect(begun).toEqual(['a', 'b'])
    await settle('b')
    expect(begun).toEqual(['a', 'b', 'C'])
    await settle('C')
    expect(begun).toEqual(['a', 'b', 'C', 'd'])
  })

  it('begin one by one at first where each may have crashed it, and more at a time with each that survives', async () => {
    const { begun, settle, clock } = await entering('ABCDEFGHIJ')
    expect(begun).toEqual(['A'])
    await settle('A')
    await settle('A')
    expect(begun.join('')).toBe('ABC')
    await clock.advance(1_000)
    expect(begun.join('')).toBe('ABCDEFG')
  })

  it('begin one by one again after another death, however many of an earlier one have survived', async () => {
    const probation = new Probation(new FakeClock(), 1_000)
    const come = () => Promise.all([1, 2, 3].map(() => Promise.race([probation.enter('crashed'), Promise.resolve()])))
    for (let n = 0; n < 10; n += 1) (await probation.enter('crashed'))!()

    expect((await come()).map((leave) => typeof leave)).toEqual(['function', 'undefined', 'undefined'])
  })

  it('begin by themselves where the next crash would end them, however many have survived, and nothing joins them until they are written', async () => {
    const { begun, settle, clock } = await entering('ABC1DE2f')
    await settle('A')
    expect(begun.join('')).toBe('ABC')
    await settle('B')
    expect(begun.join('')).toBe('ABC')
    await settle('C')
    expect(begun.join('')).toBe('ABC1')
    await settle('1')
    expect(begun.join('')).toBe('ABC1DE')
    await clock.advance(1_000)
    expect(begun.join('')).toBe('ABC1DE2')
    await settle('2')
    expect(begun.join('')).toBe('ABC1DE2f')
  })

  it('are let out before their turn when nothing is to begin any more, and later ones take theirs', async () => {
    const probation = new Probation(new FakeClock(), 1_000)
    const first = await probation.enter('crashed')
    const waiting = [probation.enter('crashed'), probation.enter('lapsed')]
    probation.letOut()
    expect(await Promise.all(waiting)).toEqual([undefined, undefined])
    const later = probation.enter('lapsed')
    first!()
    expect(await later).toBeTypeOf('function')
  })

  it('are not waited for once they have lived for a while', async () => {
    const { clock, begun } = await entering('aBc')
    await clock.advance(999)
    expect(begun).toEqual(['a'])
    await clock.advance(1)
    expect(begun).toEqual(['a', 'B'])
    await clock.advance(1_000)
    expect(begun).toEqual(['a', 'B', 'c'])
  })
})

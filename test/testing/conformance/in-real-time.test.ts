import { describe, expect, it } from 'vitest'
import { inTestTime } from '../../../src/testing/conformance/in-real-time.js'

function standStill(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) {
    // As a busy machine would have it.
  }
}

describe('a clause that waits in real time', () => {
  it('is played again, more slowly, when it broke while the process stood still', async () => {
    const ticks: number[] = []
    await inTestTime({ realTime: true, tickMs: 20 }, async (time) => {
      ticks.push(time.ms(1))
      const untilMs = performance.now() + time.ms(2)
      if (ticks.length === 1) standStill(50)
      if (performance.now() >= untilMs) throw new Error('it looked too late')
    })
    expect(ticks.slice(0, 2)).toEqual([20, 40])
  })

  it('is believed when the process had its turns, and after a few tries in any case', async () => {
    let plays = 0
    const broken = async () => {
      plays += 1
      throw new Error('broken')
    }
    await expect(inTestTime({ realTime: true, tickMs: 60_000 }, broken)).rejects.toThrow('broken')
    expect(plays).toBe(1)
    const always = async () => {
      plays += 1
      standStill(25)
      throw new Error('broken')
    }
    await expect(inTestTime({ realTime: true, tickMs: 1 }, always)).rejects.toThrow('broken')
    expect(plays).toBe(6)
  })

  it('is played once where time is moved by the clause itself', async () => {
    let plays = 0
    const broken = async () => {
      plays += 1
      standStill(30)
      throw new Error('broken')
    }
    await expect(inTestTime({}, broken)).rejects.toThrow('broken')
    expect(plays).toBe(1)
  })
})

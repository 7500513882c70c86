import { describe, expect, it, onTestFinished } from 'vitest'
import { openGround } from '../../bench/lib/ground.js'
import { ContenderProcess } from '../../bench/lib/remote-contender.js'

const BYTES = 110

async function started(name: string): Promise<ContenderProcess> {
  const contender = new ContenderProcess(name)
  onTestFinished(() => contender.end())
  return contender
}

describe.each(['millrace', 'plain queue'])('the contender "%s"', (name) => {
  it('adds and drains in its own process, and says what that took', async () => {
    const contender = await started(name)
    await contender.ask('open', { place: { kind: 'memory', address: '' } })
    const added = await contender.ask('callers', { from: 0, count: 200, bytes: BYTES, callers: 100 })
    await contender.ask('bulk', { from: 200, count: 300, bytes: BYTES })
    expect(await contender.ask('counts')).toEqual({ pending: 500, completed: 0 })

    const drained = await contender.ask('drain', { count: 500 })

    expect(added).toMatchObject({ items: 200, ms: expect.any(Number), clientMs: expect.any(Number) })
    expect(drained.items).toBe(500)
    expect(drained.ms).toBeGreaterThan(0)
    expect(await contender.ask('counts')).toEqual({ pending: 0, completed: 500 })
    expect(await contender.ask('close')).toMatchObject({ errors: [], secondRuns: 0, heapBytes: expect.any(Number) })
  })
})

describe('two processes on one file', () => {
  it('show how late what one adds starts in the other', async () => {
    const ground = await openGround('sqlite')
    onTestFinished(() => ground.close())
    const place = await ground.fresh()
    const [worker, producer] = [await started('millrace'), await started('millrace')]
    await worker.ask('open', { place, isForLatency: true })
    await producer.ask('open', { place, isForLatency: true })
    await worker.ask('listen')

    await producer.ask('pace', { from: 0, count: 20, bytes: BYTES, everyMs: 2 })

    const latencies = await worker.ask('latencies', { count: 20 })
    expect(latencies).toHaveLength(20)
    expect(latencies.every((ms) => ms > 0)).toBe(true)
  })
})

describe('a contender that cannot do what it is asked for', () => {
  it('is named with what went wrong', async () => {
    const contender = await started('millrace')

    await expect(contender.ask('drain', { count: 1 })).rejects.toThrow(
      /^millrace failed at "drain": Error: open it first/,
    )
  })

  it('does not leave anybody waiting when its process ends', async () => {
    const contender = await started('no such contender')

    await expect(contender.ask('calibrate')).rejects.toThrow('the process ended')
  })
})

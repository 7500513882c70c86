import { describe, expect, it } from 'vitest'
import { QueueRotation } from '../../src/source/feeds/queue-rotation.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

describe('queues that cannot be asked', () => {
  it('are all waited for, though something has been due for long: polling immediately would spin', async () => {
    const clock = new FakeClock()
    const rotation = new QueueRotation(['a', 'b'], clock, 1_000)
    const dueAt = clock.now()
    await clock.advance(500)
    rotation.heard(
      [
        { queue: 'a', max: 1 },
        { queue: 'b', max: 1 },
      ],
      [{ queue: 'a' }, { queue: 'b' }],
    )

    expect(rotation.rounds(8)).toEqual([])
    expect(rotation.earlier(dueAt)).toBe(clock.now() + 1_000)
  })

  it('do not delay a poll of the others when something is due there', async () => {
    const clock = new FakeClock()
    const rotation = new QueueRotation(['a', 'b'], clock, 1_000)
    rotation.heard(
      [
        { queue: 'a', max: 1 },
        { queue: 'b', max: 1 },
      ],
      [{ queue: 'a' }],
    )

    expect(rotation.earlier(clock.now() + 200)).toBe(clock.now() + 200)
    expect(rotation.earlier(undefined)).toBe(clock.now() + 1_000)
  })
})

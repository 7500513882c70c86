import { describe, expect, it } from 'vitest'
import { Registry } from '../../src/work/define/registry.js'
import type { WorkEvent } from '../../src/work/observe/events.js'
import { OrderedEvents } from '../../src/work/observe/events.js'

function recorder() {
  const emitted: string[] = []
  const events = new OrderedEvents(
    (event) => emitted.push(`${event.kind} ${'attempt' in event ? event.attempt : ''}`),
    new Registry([]),
  )
  const of = (kind: 'queued' | 'started' | 'failed', attempt: number) =>
    ({ kind, id: 'i', type: 't', groupId: 'g', attempt, at: 0 }) as unknown as WorkEvent
  return { events, emitted, of }
}

describe('events of one item', () => {
  it('wait for every earlier event, however late and in whatever order the answers come', () => {
    const { events, emitted, of } = recorder()
    events.expect('i', 'queued')
    events.emit(of('started', 1))
    events.expect('i', 1)
    events.emit(of('started', 2))
    events.expect('i', 2)
    // The enqueue is answered: the end of the first run is still owed.
    events.resolve('i', 'queued', of('queued', 1))
    events.resolve('i', 'queued')
    expect(emitted).toEqual(['queued 1', 'started 1'])
    events.resolve('i', 2, of('failed', 2))
    expect(emitted).toEqual(['queued 1', 'started 1'])
    events.resolve('i', 1, of('failed', 1))
    expect(emitted).toEqual(['queued 1', 'started 1', 'failed 1', 'started 2', 'failed 2'])
    events.emit(of('started', 3))
    expect(emitted.at(-1)).toBe('started 3')
  })

  it('do not wait for an enqueue that is never answered, once the item has run', () => {
    const { events, emitted, of } = recorder()
    events.expect('i', 'queued')
    events.emit(of('started', 1))
    events.expect('i', 1)
    events.resolve('i', 1, of('failed', 1))
    expect(emitted).toEqual(['started 1', 'failed 1'])
  })

  it('begin with what was queued, and report it once, where a run has ended before the enqueue is answered', () => {
    const { events, emitted, of } = recorder()
    events.expect('i', 'queued', of('queued', 1))
    events.emit(of('started', 1))
    events.expect('i', 1)
    events.resolve('i', 1, of('failed', 1))
    expect(emitted).toEqual(['queued 1', 'started 1', 'failed 1'])
    events.resolve('i', 'queued', of('queued', 1))
    events.resolve('i', 'queued')
    expect(emitted).toEqual(['queued 1', 'started 1', 'failed 1'])
  })
})

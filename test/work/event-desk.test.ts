import { describe, expect, it } from 'vitest'
import { EventDesk } from '../../src/work/event-desk.js'
import type { WorkEvent } from '../../src/work/events.js'
import { Registry } from '../../src/work/registry.js'

function desk() {
  const told: string[] = []
  const events = new EventDesk(
    (event) => told.push(`${event.kind} ${'attempt' in event ? event.attempt : ''}`),
    new Registry([]),
  )
  const of = (kind: 'queued' | 'started' | 'failed', attempt: number) =>
    ({ kind, id: 'i', type: 't', groupId: 'g', attempt, at: 0 }) as unknown as WorkEvent
  return { events, told, of }
}

describe('events of one item', () => {
  it('wait for each that is owed before them, however late and in whatever order the answers come', () => {
    const { events, told, of } = desk()
    events.owe('i', 'queued')
    events.emit(of('started', 1))
    events.owe('i', 1)
    events.emit(of('started', 2))
    events.owe('i', 2)
    // The enqueue is answered: the end of the first run is still owed.
    events.pay('i', 'queued', of('queued', 1))
    events.pay('i', 'queued')
    expect(told).toEqual(['queued 1', 'started 1'])
    events.pay('i', 2, of('failed', 2))
    expect(told).toEqual(['queued 1', 'started 1'])
    events.pay('i', 1, of('failed', 1))
    expect(told).toEqual(['queued 1', 'started 1', 'failed 1', 'started 2', 'failed 2'])
    events.emit(of('started', 3))
    expect(told.at(-1)).toBe('started 3')
  })

  it('do not wait for an enqueue that is never answered, once the item has run', () => {
    const { events, told, of } = desk()
    events.owe('i', 'queued')
    events.emit(of('started', 1))
    events.owe('i', 1)
    events.pay('i', 1, of('failed', 1))
    expect(told).toEqual(['started 1', 'failed 1'])
  })

  it('begin with what was queued, and tell it once, where a run has ended before the enqueue is answered', () => {
    const { events, told, of } = desk()
    events.owe('i', 'queued', of('queued', 1))
    events.emit(of('started', 1))
    events.owe('i', 1)
    events.pay('i', 1, of('failed', 1))
    expect(told).toEqual(['queued 1', 'started 1', 'failed 1'])
    events.pay('i', 'queued', of('queued', 1))
    events.pay('i', 'queued')
    expect(told).toEqual(['queued 1', 'started 1', 'failed 1'])
  })
})

import { describeInlet } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { STANDINGS } from '../brokers/standings.js'
import { FakeKafka, KafkaInlet } from './kafka-inlet.js'
import { OffsetTracker } from './offset-tracker.js'
import { FakeSqs, SqsInlet } from './sqs-inlet.js'

describeInlet({
  ...STANDINGS.sqs,
  test: { describe, it },
  open: ({ clock, leaseMs }) => {
    const client = new FakeSqs(clock)
    return {
      inlet: new SqsInlet({ client, queue: 'orders', clock, leaseMs }),
      publish: (...values) => {
        for (const value of values) client.send(value)
      },
    }
  },
})

let topics = 0

describeInlet({
  ...STANDINGS.kafka,
  test: { describe, it },
  open: ({ clock }) => {
    topics += 1
    const client = new FakeKafka(clock, `orders-${topics}`)
    return {
      inlet: new KafkaInlet({ client, clock }),
      publish: (...values) => {
        for (const value of values) client.produce(value)
      },
    }
  },
})

describe('the offsets of a partition', () => {
  it('are committed up to the lowest that is open', () => {
    const offsets = new OffsetTracker()
    expect(offsets.position).toBeUndefined()
    for (const offset of [5, 6, 7, 8]) offsets.open(offset)
    offsets.done(6)
    offsets.done(8)
    expect([offsets.position, offsets.doneAhead]).toEqual([5, 2])
    offsets.done(5)
    expect([offsets.position, offsets.doneAhead]).toEqual([7, 1])
    offsets.done(7)
    expect([offsets.position, offsets.doneAhead]).toEqual([9, 0])
  })
})

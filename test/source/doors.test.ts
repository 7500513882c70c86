import { ack, dlq, Hopper, MemDeadLetter, MemInlet, nak, QueueInlet, retry } from 'millrace/source'
import { describeInlet, FakeClock, Harness, runInletConformance } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/backends/memory/queue/memory-queue.js'

describe('the public doors', () => {
  it('hold all it takes to consume a stream, and to test that', async () => {
    const letters = new MemDeadLetter()
    const harness = new Harness({
      hopper: { middleware: [dlq(letters), retry({ maxAttempts: 3 })] },
      inlet: { drainRedeliveries: true },
      messages: [{ value: 'good' }, { value: 'bad' }],
    })
    await harness.run((_ctx, message) => (message.value[0] === 0x67 ? ack() : nak(new Error('down'))))
    harness.assertCounts({ acked: 1, nak: 2, term: 1 })
    expect(letters.size).toBe(1)
  })

  it('let one consumer serve a queue and a stream', async () => {
    const clock = new FakeClock()
    const queue = memoryQueue({ clock })
    queue.push('from the queue')
    const stream = new MemInlet({ clock, messages: [{ value: 'from the stream' }] })
    const seen: string[] = []
    for (const inlet of [new QueueInlet(queue, { clock }), stream]) {
      const hopper = new Hopper({ clock })
      const running = hopper.receive(inlet, { topics: ['any'] }, (_ctx, message) => {
        seen.push(new TextDecoder().decode(message.value))
        return ack()
      })
      await clock.settle()
      await hopper.close()
      await running
    }
    expect(seen).toEqual(['from the queue', 'from the stream'])
    expect(runInletConformance).toBe(describeInlet)
  })
})

import { describe, it } from 'vitest'
import { memoryQueue } from '../../../src/backends/memory/queue/memory-queue.js'
import type { Queue } from '../../../src/ports/ports.js'
import { MemInlet, type MemInletOptions } from '../../../src/source/inlets/memory/mem-inlet.js'
import { QueueInlet } from '../../../src/source/inlets/queue/queue-inlet.js'
import { describeInlet, type InletSuite } from '../../../src/testing/inlet-conformance.js'

const memory =
  (options: MemInletOptions = {}): InletSuite['open'] =>
  ({ clock, leaseMs }) => {
    const inlet = new MemInlet({ clock, leaseMs, ...options })
    return { inlet, publish: (...values) => void inlet.queue(...values.map((value) => ({ value }))) }
  }

describeInlet({
  name: 'memory',
  test: { describe, it },
  open: memory(),
  without: [
    'batched',
    'consumerGroups',
    'orderedDelivery',
    'pausable',
    'partitionOrdered',
    'sharedDurable',
    'starter',
    'transactional',
  ],
})

describeInlet({
  name: 'memory with everything',
  test: { describe, it },
  open: memory({ batched: true, pausable: true, consumerGroups: true, ordered: true }),
  without: ['partitionOrdered', 'sharedDurable', 'starter', 'transactional'],
})

describeInlet({
  name: 'memory that only records',
  test: { describe, it },
  open: memory({ redeliver: false }),
  without: ['redelivery', 'batched', 'leaseExtender', 'starter'],
})

const overQueue =
  (wrap: (queue: Queue) => Queue): InletSuite['open'] =>
  ({ clock, leaseMs }) => {
    const queue = memoryQueue({ clock })
    const inlet = new QueueInlet(wrap(queue), { clock, leaseMs, idlePollMs: 100 })
    return {
      inlet,
      publish: (...values) => {
        for (const value of values) queue.push(value)
      },
    }
  }

describeInlet({
  name: 'the memory queue',
  test: { describe, it },
  open: overQueue((queue) => queue),
  without: ['seekable'],
})

// What a user's own queue has at the least: no size, no dead letters, no bulk calls, and only promises.
const minimal = (queue: Queue): Queue => ({
  push: async (body, options) => queue.push(body, options),
  pop: async (max, visibility) => queue.pop(max, visibility),
  heartbeat: async (pulled, visibility) => void queue.heartbeat(pulled, visibility),
  ack: async (pulled) => queue.ack(pulled),
  fail: async (pulled, delay) => queue.fail(pulled, delay),
})

describeInlet({
  name: 'a minimal queue',
  test: { describe, it },
  open: overQueue(minimal),
  without: ['releaser', 'seekable', 'lagReporter', 'starter', 'identity'],
})

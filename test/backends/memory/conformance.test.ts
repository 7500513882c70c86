import { describe, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import type { Ports } from '../../../src/ports/ports.js'
import { describeBackend, WEAKER_OVER_PLAIN_PORTS } from '../../../src/testing/conformance/describe-backend.js'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { overPorts } from '../../../src/testing/conformance/plain-subject.js'

const test = { describe, it }

describeBackend({ name: 'memory', test, open: (clock) => memoryBackend({ clock }) })

/** The port with everything it can do as ordinary members: what a user's own port with every capability looks like. */
const whole = <Port extends object>(port: Port): Port =>
  Object.fromEntries(Object.getOwnPropertyNames(port).map((name) => [name, port[name as keyof Port]])) as Port

describeLedger({
  name: 'memory (plain ports with every capability)',
  test,
  without: WEAKER_OVER_PLAIN_PORTS,
  stallMs: 0,
  open: (clock) => {
    const { queue, pubsub, store, named } = memoryBackend({ clock })
    return overPorts({ queue: whole(queue), pubsub: whole(pubsub), store: whole(store) }, clock, whole(named('bulk')))
  },
})

/** What a port must have, and nothing else. */
function minimal({ queue, pubsub, store }: Ports): Ports {
  const { push, pop, heartbeat, ack, fail } = queue
  const { publish, subscribe } = pubsub
  const { get, set, setIfNotExists } = store
  return {
    queue: { push, pop, heartbeat: (pulled, visibility) => void heartbeat(pulled, visibility), ack, fail },
    pubsub: { publish, subscribe },
    store: { get, set, setIfNotExists },
  }
}

describeLedger({
  name: 'memory (minimal ports)',
  test,
  without: [...WEAKER_OVER_PLAIN_PORTS, 'counts once', 'named queues', 'increment'],
  stallMs: 0,
  open: (clock) => overPorts(minimal(memoryBackend({ clock })), clock),
})

import { describe, it } from 'vitest'
import { type MemoryBackend, memoryBackend, memoryQueue, type QueueFsLike } from '../../../src/backends/memory/index.js'
import type { Clock } from '../../../src/core/time/clock.js'
import { NATIVE, type OwnedPorts } from '../../../src/ports/find-ledger.js'
import type { Ports } from '../../../src/ports/ports.js'
import { describeBackend, WEAKER_OVER_PLAIN_PORTS } from '../../../src/testing/conformance/describe-backend.js'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { describeQueue } from '../../../src/testing/conformance/describe-ports.js'
import { overPorts } from '../../../src/testing/conformance/plain-subject.js'

const test = { describe, it }

describeBackend({ name: 'memory', test, open: (clock) => memoryBackend({ clock }) })

/** Files that live as long as a clause. */
function filesInMemory(): QueueFsLike {
  const files = new Map<string, string>()
  return {
    readFile: (path) => files.get(path),
    writeFile: (path, data) => void files.set(path, data),
    rename: (from, to) => {
      files.set(to, files.get(from) ?? '')
      files.delete(from)
    },
    mkdir: () => undefined,
  }
}

// What is written down with every change must not change what a queue does.
describeQueue({
  name: 'memoryQueue on a file',
  test,
  open: (clock) => memoryQueue({ clock, file: 'queue', fs: filesInMemory() }),
})

/** Likewise, as a journal that is appended to. */
function journalInMemory(): QueueFsLike {
  const files = filesInMemory()
  return { ...files, append: (path, data) => files.writeFile(path, (files.readFile(path) ?? '') + data) }
}

describeBackend({
  name: 'memory on a file',
  test,
  open: (clock) => memoryBackend({ clock, queue: { file: 'queue', fs: journalInMemory() } }),
})

/** A backend whose native ledger cannot be opened: what runs on it runs on its plain ports, or fails. */
function withoutItsLedger(clock: Clock): MemoryBackend {
  const backend = memoryBackend({ clock })
  const owned = (backend.store as { [NATIVE]?: { -readonly [K in keyof OwnedPorts]: OwnedPorts[K] } })[NATIVE]
  if (owned === undefined) throw new Error('the memory backend has a native ledger')
  owned.open = () => {
    throw new Error('the native ledger was opened on the plain path')
  }
  return backend
}

/** A port with everything it can do as ordinary members: a user's own port with every capability looks like this. */
const whole = <Port extends object>(port: Port): Port =>
  Object.fromEntries(Object.getOwnPropertyNames(port).map((name) => [name, port[name as keyof Port]])) as Port

describeLedger({
  name: 'memory (plain ports with every capability)',
  test,
  without: WEAKER_OVER_PLAIN_PORTS,
  stallMs: 0,
  open: (clock) => {
    const { queue, pubsub, store, named } = withoutItsLedger(clock)
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
  open: (clock) => overPorts(minimal(withoutItsLedger(clock)), clock),
})

import { describe, it } from 'vitest'
import { type MemoryBackend, memoryBackend } from '../../../src/backends/memory/index.js'
import type { Clock } from '../../../src/core/clock.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { ownedBy } from '../../../src/ports/native.js'
import { overPlainPorts } from '../../../src/ports/plain/index.js'
import type { Ports } from '../../../src/ports/ports.js'
import { WEAKER_OVER_PLAIN_PORTS } from '../../../src/testing/conformance/describe-backend.js'
import { describeLedger, type LedgerUnderTest } from '../../../src/testing/conformance/describe-ledger.js'
import { mortal } from '../../../src/testing/conformance/mortal.js'

// Two systems on one memory backend: one on its very ports, one that wraps its store. They share keys and queues, and each
// has to see what the other did. Where a clause asks for "another process", that one is of the other mode.

function native(backend: MemoryBackend): Ledger {
  const owned = ownedBy(backend, [])
  if (!('open' in owned)) throw new Error(`no native ledger: the ${owned.foreign} is foreign`)
  return owned.open({ prefix: 'work:' })
}

function plain(ports: Ports, named: MemoryBackend['named'] | undefined, clock: Clock): Ledger {
  return overPlainPorts(ports, named === undefined ? [] : [named('bulk')], { clock }).ledger
}

/** As `createWork({ ...backend, store: wrapped })` makes them, with the atoms that a wrapper passes on. */
function wrapped({ queue, pubsub, store }: MemoryBackend): Ports {
  const { incrementOnce, compareAndSet, getMany, setMany } = store
  return { queue, pubsub, store: { ...store, incrementOnce, compareAndSet, getMany, setMany } }
}

function subject(clock: Clock, first: 'native' | 'plain'): LedgerUnderTest {
  const backend = memoryBackend({ clock })
  const ports = wrapped(backend)
  const open = {
    native: () => native(backend),
    plain: () => plain(ports, backend.named, clock),
  }
  return {
    ledger: open[first](),
    queue: 'default',
    other: 'bulk',
    again: open[first === 'native' ? 'plain' : 'native'],
    pushRaw: (body) => backend.queue.push(body),
    mortal: (fate) => {
      const doomed = mortal(ports, clock, fate)
      return { ledger: plain(doomed.ports, undefined, doomed.clock), hasMet: doomed.hasMet, death: doomed.death }
    },
    close: () => backend.close(),
  }
}

const FOUND_BY_THE_OTHER = 'the port of the other mode frees the lapsed lease, and has nobody to tell'
const AT_ONCE =
  'a plain enqueue takes several steps, and a native one may come between them: ids that both may choose at once need one mode'
const HALF_DONE = 'steps that a plain system left half done are completed by plain systems, which know their order'

describeLedger({
  name: 'memory, native beside plain',
  test: { describe, it },
  stallMs: 0,
  waived: {
    'ledger: a claim tells once which runs were cut off': FOUND_BY_THE_OTHER,
    'ledger: one id enqueued by two processes at once is one item': AT_ONCE,
  },
  open: (clock) => subject(clock, 'native'),
})

describeLedger({
  name: 'memory, plain beside native',
  test: { describe, it },
  stallMs: 0,
  without: [...WEAKER_OVER_PLAIN_PORTS, 'named queues'],
  waived: {
    'ledger: a claim tells once which runs were cut off': FOUND_BY_THE_OTHER,
    'ledger: one id enqueued by two processes at once is one item': AT_ONCE,
    'ledger: an inbox hears what it is sent': 'a plain system tells everybody on the channel, not one inbox',
    'ledger: a crash during an enqueue loses and doubles nothing': HALF_DONE,
    'ledger: a crash during a fan-out loses and doubles nothing': HALF_DONE,
    'ledger: a crash while a gate is freed loses and doubles nothing': HALF_DONE,
    'ledger: a crash during a park loses and doubles nothing': HALF_DONE,
  },
  open: (clock) => subject(clock, 'plain'),
})

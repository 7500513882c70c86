import { integerOption, OptionError, OptionTypeError, optionsObject } from '../../core/options.js'
import { ownPorts } from '../../ports/find-ledger.js'
import { type Mode, WrongModeError } from '../../ports/mode.js'
import type { Backend, Queue } from '../../ports/ports.js'
import { checkPushedNatively } from '../../ports/pushed-natively.js'
import { BeforeClose } from '../shared/before-close.js'
import { withHidden } from '../shared/hidden.js'
import { DEFAULT_QUEUE } from './file/queue-records.js'
import { ItemRecord } from './items/item-record.js'
import { ItemTable } from './items/item-table.js'
import { KeySpace } from './key-space.js'
import { memoryLedger } from './ledger.js'
import { Notifier } from './notify.js'
import { memoryPubSub } from './pubsub.js'
import { type MemoryQueueKeeping, resolveKeeping } from './queue/memory-queue.js'
import { type MemoryQueue, queuePort } from './queue/queue-port.js'
import { Queues } from './queue/queues.js'
import { type MemoryStore, storePort } from './store.js'
import { type MemoryOptions, timeOf } from './time.js'

/** Options of `memoryBackend`. All are optional. */
export interface MemoryBackendOptions extends MemoryOptions {
  /** How the queues are kept: with `file` they survive the process. Store and pub/sub stay in memory. */
  readonly queue?: MemoryQueueKeeping
  /** Further queues to have from the start. Any other name begins to exist when it is first asked for. */
  readonly named?: readonly string[]
  /** Largest item, result or group value, in bytes. Default: 1 MiB. */
  readonly maxItemBytes?: number
  /** How many ended items are kept at most; those that would expire first leave first. Default: 500 000. */
  readonly maxEnded?: number
  /**
   * How many bytes are stored at most: inputs, results, errors, progress, group values, bodies and texts of the store, and
   * some hundred bytes for each record. An enqueue that would go beyond is refused with `STORE_FULL`; what a run settles is
   * always taken. Default: 1 GiB.
   */
  readonly maxBytes?: number
  /**
   * How many bytes of ended items and groups are kept at most: beyond it the oldest leave before their time, but none whose
   * waiter has not read it yet. Less than `maxBytes`. Default: 128 MiB, or half of `maxBytes` if that is less.
   */
  readonly keepEndedBytes?: number
}

const OPTIONS = ['now', 'clock', 'queue', 'named', 'maxItemBytes', 'maxEnded', 'maxBytes', 'keepEndedBytes'] as const

/** Three ports in memory, made together, and a native ledger behind them. */
export interface MemoryBackend extends Backend {
  readonly queue: MemoryQueue
  readonly store: MemoryStore
  named(queue: string): MemoryQueue
  /** Writes what was handed in before, then lets go of the file, if there is one. Nothing else is held. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Everything in this process: for tests, for a first evening, and for one process that needs no server. With
 * `{ queue: { file } }` accepted work survives the process.
 *
 * A system on these very ports works natively, and every settlement is atomic. A system that wraps a port, and a stream
 * that pops from a queue, use the backend over plain ports. One backend serves one of the two, whichever comes first; the
 * other is refused with `WRONG_MODE`.
 *
 * @example
 * ```ts
 * const backend = memoryBackend({ queue: { file: './work.queue' } })
 * const work = createWork({ backend, work: [sendInvoice] as const })
 * ```
 */
export function memoryBackend(options?: MemoryBackendOptions): MemoryBackend {
  const given = optionsObject('memoryBackend', options, OPTIONS)
  const time = timeOf(given, 'memoryBackend')
  const maxItemBytes = integerOption('memoryBackend.maxItemBytes', given.maxItemBytes, {
    min: 1_024,
    default: 1_048_576,
  })
  const maxEnded = integerOption('memoryBackend.maxEnded', given.maxEnded, { min: 1, default: 500_000 })
  const { maxBytes, keepEndedBytes } = boundsOf(given)
  const names = namesOf(given.named)

  const queues = new Queues(time, resolveKeeping(given.queue, 'memoryBackend.queue'))
  const pubsub = memoryPubSub()
  const notifier = new Notifier()
  const settled = (): void => {
    queues.file?.flush()
    notifier.flush()
  }
  const table = new ItemTable({
    queues,
    notifier,
    settled,
    bytes: queues.bytes,
    maxEnded,
    keepEndedBytes,
    maxBytes,
  })
  const mode = modeCheck()
  // Messages of the file have no record yet: the ledger reads them when it looks for an item.
  for (const queue of queues.all()) for (const message of queue.messages()) queues.markUnread(message)

  const ports = new Map<string, MemoryQueue>()
  const queuesByPort = new Map<Queue, string>()
  const named = (name: string): MemoryQueue => {
    checkName(name, 'named(queue)')
    let port = ports.get(name)
    if (port === undefined) {
      port = queuePort(queues.named(name), time, {
        popping: () => mode.check('plain'),
        pushing(body) {
          if (mode.is === 'native') checkPushedNatively(body)
        },
        pushed(queue, message) {
          queues.markUnread(message)
          notifier.ready(queue, message.dueAt, time.wall())
        },
        acked(message) {
          queues.markRead(message)
          // A reader may have found it before it was popped.
          if (message.owner instanceof ItemRecord) table.remove(message.owner)
        },
        settled,
      })
      ports.set(name, port)
      queuesByPort.set(port, name)
    }
    return port
  }
  const queue = named(DEFAULT_QUEUE)
  for (const name of names) named(name)
  const store = storePort(new KeySpace(time, queues.bytes))
  const beforeClose = new BeforeClose()
  ownPorts({
    queues: queuesByPort,
    pubsub,
    store,
    open: () => memoryLedger(table, maxItemBytes, time, () => mode.check('native')),
    beforeClose: beforeClose.add,
  })
  const close = async (): Promise<void> => {
    await beforeClose.settled()
    queues.file?.close()
  }
  return withHidden({ queue, pubsub, store }, { named, close, [Symbol.asyncDispose]: close })
}

/** Remembers the first mode that the backend is used in, and refuses the other. */
function modeCheck() {
  let is: Mode | undefined
  return {
    get is(): Mode | undefined {
      return is
    },
    check(wanted: Mode): void {
      is ??= wanted
      if (is !== wanted) throw new WrongModeError('This memory backend', 'memoryBackend()', is, wanted)
    },
  }
}

const GIB = 1_073_741_824
const MOST_ENDED = 134_217_728

function boundsOf(given: Pick<MemoryBackendOptions, 'maxBytes' | 'keepEndedBytes'>) {
  const maxBytes = integerOption('memoryBackend.maxBytes', given.maxBytes, { min: 1_024, default: GIB })
  const keepEndedBytes = integerOption('memoryBackend.keepEndedBytes', given.keepEndedBytes, {
    min: 0,
    default: Math.min(MOST_ENDED, Math.floor(maxBytes / 2)),
  })
  // Otherwise what has ended could fill it all, and nothing could be enqueued until it expires.
  if (keepEndedBytes >= maxBytes)
    throw new OptionError('memoryBackend.keepEndedBytes', `less than maxBytes (${maxBytes})`, keepEndedBytes)
  return { maxBytes, keepEndedBytes }
}

function namesOf(named: readonly string[] | undefined): readonly string[] {
  if (named === undefined) return []
  if (!Array.isArray(named)) throw new OptionTypeError('memoryBackend.named', 'a list of queue names', named)
  for (const name of named) checkName(name, 'memoryBackend.named')
  return named
}

function checkName(name: unknown, where: string): void {
  if (typeof name !== 'string' || name === '') throw new OptionTypeError(where, 'a non-empty string', name)
}

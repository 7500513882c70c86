import type { OneLineFault } from '../one-line-faults.js'

const flow = (test: string) => ({ file: 'test/work/flow.test.ts', test })
const onMemory = (test: string) => ({ file: 'test/work/flow-on-memory.test.ts', test })
const load = (test: string) => ({ file: 'test/work/flow-load.slow.test.ts', test })
const backlog = (test: string) => ({ file: 'test/simulation/flow.slow.test.ts', test })

/** What a worker could get wrong that holds more than it can settle, or loses what it has done. */
export const FLOW_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'what has ended and is not written does not count as held',
    file: 'src/work/worker/prefetch-window.ts',
    find: 'const counted = held.waiting + held.ended + ',
    replace: 'const counted = held.waiting + ',
    caughtBy: load('is not given more than it can write'),
  },
  {
    fault: 'a window that a burst has widened',
    file: 'src/work/worker/prefetch-window.ts',
    find: 'return Math.min(this.#begun.perMs(overMs), this.#written.perMs(overMs))',
    replace: 'return Math.max(this.#begun.perMs(overMs), this.#written.perMs(overMs))',
    caughtBy: backlog('the window holds'),
  },
  {
    fault: 'an outcome that could not be written is forgotten when its item comes back',
    file: 'src/work/worker/worker-loop.ts',
    find: '    const kept = this.#unwritten.of(delivery.item)\n    if (kept !== undefined) return kept.under(delivery.item)\n',
    replace: '',
    caughtBy: onMemory('although their leases were over'),
  },
  {
    fault: 'a lease is found to be over at the next heartbeat only',
    file: 'src/source/loop/lease-keeper.ts',
    find: 'if (delivery.leasedAt < this.#oldest) this.#armEnd(delivery.leasedAt)',
    replace: 'if (delivery.leasedAt < this.#oldest - Infinity) this.#armEnd(delivery.leasedAt)',
    caughtBy: onMemory('aborts its handler when it ends'),
  },
  {
    fault: 'a heartbeat that hangs takes its neighbours along each time',
    file: 'src/source/loop/lease-keeper.ts',
    find: 'if (delivery.hasHung) hung.push(delivery)',
    replace: 'if (delivery.hasHung) due.push(delivery)',
    caughtBy: onMemory('does not keep others from their heartbeats'),
  },
  {
    fault: 'places are not lent',
    file: 'src/work/worker/lend-place.ts',
    find: 'return place === undefined ? wait : place.during(wait, awaitedType)',
    replace: 'return wait',
    caughtBy: flow('does not count handlers that await other work'),
  },
  {
    fault: 'an outcome is reported for each time that it is sent',
    file: 'src/work/engine-context.ts',
    find: 'if (failures === 1) this.notWritten(error)',
    replace: "this.failed(error, 'commit')",
    caughtBy: onMemory('reported once'),
  },
  {
    fault: 'outcomes go on in halves while the backend is away',
    file: 'src/core/group-commit.ts',
    find: 'const isAtFault = this.#answers > batch.answersBefore',
    replace: 'const isAtFault = batch.answersBefore >= 0',
    caughtBy: { file: 'test/core/group-commit.test.ts', test: 'stay together' },
  },
  {
    fault: 'a suspect begins without its mark',
    file: 'src/work/worker/crash-suspects.ts',
    find: "return delivery.state === 'held' && status !== 'unknown'",
    replace: "return delivery.state === 'held'",
    caughtBy: onMemory('whose mark was not taken'),
  },
  {
    fault: 'what only waited counts as crashed',
    file: 'src/source/feeds/ledger-feed.ts',
    find: 'running: isRunning }',
    replace: 'running: isRunning || true }',
    caughtBy: onMemory('has not crashed while it only waited'),
  },
  {
    fault: 'the last chance runs beside others',
    file: 'src/work/worker/doers.ts',
    find: 'if (!isLastChance(item)) return own',
    replace: 'if (!isLastChance(item) || item.crashes > 0) return own',
    caughtBy: onMemory('runs its last chance by itself'),
  },
  {
    fault: 'a window that is full of one type is closed to all',
    file: 'src/work/worker/doer-admission.ts',
    find: 'return { types, max: Math.max(0, Math.min(beginsNow, left)) }',
    replace: 'return { types, max: Math.min(0, Math.min(beginsNow, left)) }',
    caughtBy: load('do not keep each other out'),
  },
  {
    fault: 'a batch that keeps failing keeps its place',
    file: 'src/core/group-commit.ts',
    find: 'const isInFront = batch.failures < TRIES_IN_FRONT',
    replace: 'const isInFront = batch.failures < Infinity',
    caughtBy: { file: 'test/core/group-commit.test.ts', test: 'go on in halves' },
  },
  {
    fault: 'a handler without a place lends that of its parent',
    file: 'src/work/worker/lend-place.ts',
    find: 'return isInPlace() ? currentPlace().exit(handle) : handle()',
    replace: 'return handle()',
    caughtBy: load('keep their place while a child without one waits'),
  },
  {
    fault: 'a stop does not wait for handlers to obey',
    file: 'src/work/worker/worker-loop.ts',
    find: 'const STOP_GRACE_MS = 500',
    replace: 'const STOP_GRACE_MS = 0',
    caughtBy: flow('returns immediately what obeys it'),
  },
  {
    fault: 'all of enqueueMany is sent in one call',
    file: 'src/work/enqueue/enqueue-many.ts',
    find: 'const isFull = room !== undefined || (each?.tx === undefined && answers.open >= sender.mostUnanswered)',
    replace: 'const isFull = room !== undefined && answers.open >= Infinity',
    caughtBy: load('have enqueueMany wait for room'),
  },
]

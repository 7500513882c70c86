import type { OneLineFault } from '../one-line-faults.js'

/** Random work in trouble, seed after seed. */
const simulation = { file: 'test/simulation/native.slow.test.ts', test: 'keeps its promises' }
const regressions = (test: string) => ({ file: 'test/work/regressions.test.ts', test })
const peace = (test: string) => ({ file: 'test/simulation/peace.slow.test.ts', test })

/** What a work engine could get wrong: each is found by the simulation within a few hundred seeds. */
export const WORK_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a retry keeps its attempt',
    file: 'src/work/settle/settle.ts',
    find: "again(nextAttempt, delayMs, 'retry')",
    replace: "again(envelope.attempt, delayMs, 'retry')",
    caughtBy: simulation,
  },
  {
    fault: 'a deferral spends an attempt',
    file: 'src/work/settle/settle.ts',
    find: "again(envelope.attempt, decision.delayMs, 'deferred')",
    replace: "again(envelope.attempt + 1, decision.delayMs, 'deferred')",
    caughtBy: simulation,
  },
  {
    fault: 'the last attempt is not made',
    file: 'src/core/retry/decide-retry.ts',
    find: 'if (!(attempt < maxAttempts))',
    replace: 'if (!(attempt + 1 < maxAttempts))',
    caughtBy: simulation,
  },
  {
    fault: 'children are not counted in their group',
    file: 'src/work/settle/settle.ts',
    find: "    effects.push({ do: 'joinGroup', groupId, count: children.length })\n",
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a dead item stays in the count of its group',
    file: 'src/work/settle/settle.ts',
    find: '  effects.push(...endEffects(envelope, false))\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    // W7
    fault: 'children are queued before their parent settles, and outside of it',
    file: 'src/source/feeds/ledger-feed.ts',
    find: '    this.#o.outcomes.addFor(this, this)\n',
    replace:
      "    const pushes = this.settlement.effects.filter((effect) => effect.do === 'enqueue')\n" +
      "    const early = { type: '', settlement: { guard: { by: 'none' }, effects: pushes } } as const\n" +
      '    const send = () => this.#o.outcomes.addFor(this, this)\n' +
      '    if (pushes.length > 0) void this.#o.outcomes.add(early).then(send)\n' +
      '    else send()\n',
    caughtBy: simulation,
  },
  {
    // W1
    fault: 'an outcome is written before the handler has run (ack first)',
    file: 'src/source/feeds/ledger-feed.ts',
    find: '        more ||= reply.more\n',
    replace:
      '        more ||= reply.more\n' +
      '        if (reply.items.length > 0) {\n' +
      '          await o.outcomes.addMany(\n' +
      '            reply.items.map(({ lease, envelope: { id, type } }) => ({\n' +
      '              type,\n' +
      '              settlement: {\n' +
      "                guard: { by: 'lease', lease },\n" +
      "                effects: [{ do: 'complete', id, ending: 'done', keepMs: 86_400_000 }],\n" +
      '              },\n' +
      '            })),\n' +
      '          )\n' +
      '        }\n',
    caughtBy: simulation,
  },
  {
    // W13
    fault: 'an append is folded on no version',
    file: 'src/work/settle/group-value.ts',
    find: '{ ifVersion: now?.version ?? 0 }',
    replace: '{}',
    caughtBy: simulation,
  },
  {
    fault: 'a contribution is never final',
    file: 'src/work/settle/group-value.ts',
    find: '    isFinal = final === true\n',
    replace: '    isFinal = final === undefined\n',
    caughtBy: simulation,
  },
  {
    // W3
    fault: 'a read that fails after the handler runs it again',
    file: 'src/work/settle/append-queue.ts',
    find: '      this.#o.onError(error)\n      return undefined\n',
    replace: '      throw error\n',
    caughtBy: simulation,
  },
  {
    // W2
    fault: 'crashes do not count',
    file: 'src/work/run/crash-limit.ts',
    find: 'return crashes >= CRASH_LIMIT &&',
    replace: 'return crashes < 0 &&',
    caughtBy: simulation,
  },
  {
    fault: 'one crash is enough',
    file: 'src/work/run/crash-limit.ts',
    find: 'const CRASH_LIMIT = 3',
    replace: 'const CRASH_LIMIT = 1',
    caughtBy: simulation,
  },
  {
    fault: 'leases are not extended',
    file: 'src/source/loop/lease-keeper.ts',
    find: '      this.#beat()\n',
    replace: '',
    caughtBy: peace('loses no lease'),
  },
  {
    fault: 'what waited for its turn until its lease ran out is started all the same',
    file: 'src/source/loop/loop-run.ts',
    find: '    this.#keeper?.loseOverdue(deliveries)\n',
    replace: '',
    caughtBy: { file: 'test/simulation/world.test.ts', test: 'starts nothing of what had waited' },
  },
  {
    fault: 'a lease counts from the reply, not from the question',
    file: 'src/source/loop/loop-run.ts',
    find: 'new Delivery(item, now, askedMs, this.#inFlight.stages)',
    replace: 'new Delivery(item, now, now, this.#inFlight.stages)',
    caughtBy: simulation,
  },
  {
    fault: 'a run that has lost its lease is not notified',
    file: 'src/source/loop/delivery.ts',
    find: '    this.abort(new LeaseLostError(cause === undefined ? undefined : { cause }))\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a wait that began before the enqueue was accepted is called expired',
    file: 'src/work/wait/waiters.ts',
    find: 'isKnown: false,',
    replace: 'isKnown: true,',
    caughtBy: simulation,
  },
  {
    // W10
    fault: 'no poll is made for waiters',
    file: 'src/work/wait/waiters.ts',
    find: '      if (due.length > 0) await this.#query(due)\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a wait is written into an envelope that has left',
    file: 'src/work/wait/handles.ts',
    find: 'if (draft === undefined || batch !== batches) return false',
    replace: 'if (draft === undefined) return false',
    caughtBy: peace('notifies waiting callers'),
  },
  {
    // W26
    fault: 'deadlines go by the clock of the machine',
    file: 'src/work/worker/backend-time.ts',
    find: 'return this.#offset === undefined ? this.#clock.now() : Math.round(this.#clock.monotonic() + this.#offset)',
    replace: 'return this.#clock.now()',
    caughtBy: simulation,
  },
  {
    fault: 'a group opens anew whenever its work is enqueued again',
    file: 'src/work/enqueue/resolve-item.ts',
    find: 'return trace === undefined ? { groupId: id } : { groupId: id, trace }',
    replace: 'return { groupId: id + Math.random(), ...(trace === undefined ? {} : { trace }) }',
    caughtBy: { file: 'test/work/enqueued-again.test.ts', test: 'opens a group of its own id' },
  },
  {
    // W8
    fault: 'a wake-up does not wake the worker',
    file: 'src/source/loop/loop-run.ts',
    find: 'const offReady = this.#feed.onReady?.(wake)',
    replace: 'const offReady = this.#feed.onReady?.(() => undefined)',
    caughtBy: peace('starts work when it is due'),
  },
  {
    // W32
    fault: 'a shutdown waits for what never ends',
    file: 'src/source/loop/loop-run.ts',
    find: 'await Promise.race([this.#empty(), this.#deadline.reached])',
    replace: 'await this.#empty()',
    caughtBy: simulation,
  },
  {
    // W13
    fault: 'folds into one group do not take turns',
    file: 'src/work/settle/append-queue.ts',
    find: '    await before\n',
    replace: '',
    caughtBy: { file: 'test/work/append-queue.test.ts', test: 'settle once each' },
  },
  {
    // W22
    fault: 'when accept throws, its item waits for its lease to lapse',
    file: 'src/source/loop/loop-run.ts',
    find: "      this.#failed('offer', error)\n      return this.#o.idlePollMs\n",
    replace: "      this.#failed('offer', error)\n      return 'taken'\n",
    caughtBy: regressions('puts its item back for a moment and is reported: the lease is not left to lapse'),
  },
  {
    // W14
    fault: 'states of what has ended are kept forever',
    file: 'src/work/wait/states.ts',
    find: 'while (this.#open.size + this.#ended.size > this.#most) {',
    replace: 'while (this.#open.size > this.#most) {',
    caughtBy: regressions('is bounded: what has ended goes first'),
  },
  {
    // W28
    fault: 'a wait for what is no longer kept goes on forever',
    file: 'src/work/wait/waiters.ts',
    find: 'this.#settle(waiter, () => waiter.reject(new ResultExpiredError(waiter.id)))',
    replace: '',
    caughtBy: regressions('for what is no longer kept rejects'),
  },
  {
    // W30
    fault: 'the queue knows no priorities',
    file: 'src/backends/memory/queue/queue-port.ts',
    find: 'Number.isFinite(priority) ? priority : 0',
    replace: 'Number.isFinite(priority) ? 0 : 0',
    caughtBy: regressions('is taken by priority, not only what a process has already taken'),
  },
  {
    // W32
    fault: 'a start during a stop begins a second loop',
    file: 'src/work/engine.ts',
    find: 'if (this.#running !== undefined || this.#stopping !== undefined) return',
    replace: 'if (this.#running !== undefined) return',
    caughtBy: regressions('leaves one loop: what it started ends with the next stop'),
  },
  {
    fault: 'a process that closed a group and lost the answer notifies no waiter',
    file: 'src/work/settle/report-closed-groups.ts',
    find: "const isReplyLost = result?.kind === 'repeated' && ",
    replace: "const isReplyLost = result?.kind === 'stale' && ",
    caughtBy: { file: 'test/work/unanswered.test.ts', test: 'is repeated immediately where it failed instead' },
  },
  {
    fault: 'unknownTypeTimeout ends what a live worker knows',
    file: 'src/work/worker/unknown-types.ts',
    find: 'return ({ queue, type }) => alive.some((one) => runs(one, queue, type))',
    replace: 'return () => alive.length < 0',
    caughtBy: { file: 'test/work/unknown-types.test.ts', test: 'is left alone by unknownTypeTimeout while' },
  },
  {
    fault: 'unknownTypeTimeout ends an old backlog when its worker restarts',
    file: 'src/work/worker/unknown-types.ts',
    find: 'before.get(keyOf(one)) ?? nowMs',
    replace: 'before.get(keyOf(one)) ?? -Infinity',
    caughtBy: { file: 'test/work/unknown-types.test.ts', test: 'when its worker restarts' },
  },
  {
    fault: 'a worker never reports a type that it has learnt',
    file: 'src/work/engine-context.ts',
    find: 'if (registry.size !== this.#recordedTypes) {',
    replace: 'if (registry.size < 0) {',
    caughtBy: { file: 'test/work/unknown-types.test.ts', test: 'is no longer unknown once a worker has learnt' },
  },
]

import type { OneLineFault } from '../one-line-faults.js'

/** Random work in trouble, seed after seed. */
const simulation = { file: 'test/simulation/native.test.ts', test: 'keeps its promises' }
const peace = (test: string) => ({ file: 'test/simulation/peace.test.ts', test })

/** What a work engine could get wrong: each is found by the simulation within a few hundred seeds. */
export const WORK_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a retry keeps its attempt',
    file: 'src/work/settle.ts',
    find: "again(nextAttempt, delayMs, 'retry')",
    replace: "again(envelope.attempt, delayMs, 'retry')",
    caughtBy: simulation,
  },
  {
    fault: 'a deferral spends an attempt',
    file: 'src/work/settle.ts',
    find: "again(envelope.attempt, decision.delayMs, 'deferred')",
    replace: "again(envelope.attempt + 1, decision.delayMs, 'deferred')",
    caughtBy: simulation,
  },
  {
    fault: 'the last attempt is not made',
    file: 'src/core/decide-retry.ts',
    find: 'if (!(attempt < maxAttempts))',
    replace: 'if (!(attempt + 1 < maxAttempts))',
    caughtBy: simulation,
  },
  {
    fault: 'children are not counted in their group',
    file: 'src/work/settle.ts',
    find: "    effects.push({ do: 'openGroup', groupId, by: children.length })\n",
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a dead item stays in the count of its group',
    file: 'src/work/settle.ts',
    find: '  tellOthers(effects, envelope, false)\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'children are queued before their parent settles, and outside of it',
    file: 'src/source/ledger-feed.ts',
    find: '    const result = await o.commits.add(settling.settlement)\n',
    replace:
      "    const pushes = settling.settlement.effects.filter((effect) => effect.do === 'push')\n" +
      "    if (pushes.length > 0) await o.commits.add({ guard: { by: 'none' }, effects: pushes })\n" +
      '    const result = await o.commits.add(settling.settlement)\n',
    caughtBy: simulation,
  },
  {
    fault: 'an outcome is written before the handler has run (ack first)',
    file: 'src/source/ledger-feed.ts',
    find: '        if (reply.items.length > 0) {\n',
    replace:
      '        if (reply.items.length > 0) {\n' +
      '          await o.commits.addMany(\n' +
      '            reply.items.map(({ lease, envelope: { id } }) => ({\n' +
      "              guard: { by: 'lease', lease },\n" +
      "              effects: [{ do: 'finish', id, ending: 'done', keepMs: 86_400_000 }],\n" +
      '            })),\n' +
      '          )\n',
    caughtBy: simulation,
  },
  {
    fault: 'an append is folded on no version',
    file: 'src/work/contribution.ts',
    find: '{ expect: now?.version ?? 0 }',
    replace: '{}',
    caughtBy: simulation,
  },
  {
    fault: 'a contribution is never final',
    file: 'src/work/contribution.ts',
    find: '    isFinal = final === true\n',
    replace: '    isFinal = final === undefined\n',
    caughtBy: simulation,
  },
  {
    fault: 'a read that fails after the handler runs it again',
    file: 'src/work/runner.ts',
    find: "      this.#r.onError(error, 'commit')\n      return undefined\n    }\n  }\n\n  #settling",
    replace: '      throw error\n    }\n  }\n\n  #settling',
    caughtBy: simulation,
  },
  {
    fault: 'crashes do not count',
    file: 'src/work/route.ts',
    find: 'if (item.crashes >= CRASH_FLOOR &&',
    replace: 'if (item.crashes < 0 &&',
    caughtBy: simulation,
  },
  {
    fault: 'one crash is enough',
    file: 'src/work/route.ts',
    find: 'const CRASH_FLOOR = 3',
    replace: 'const CRASH_FLOOR = 1',
    caughtBy: simulation,
  },
  {
    fault: 'leases are not extended',
    file: 'src/source/loop/lease-keeper.ts',
    find: 'else void this.#beat()',
    replace: 'else this.#loseOverdue()',
    caughtBy: peace('loses no lease'),
  },
  {
    fault: 'what waited for its turn until its lease ran out is started all the same',
    file: 'src/source/loop/run.ts',
    find: '    this.#keeper?.loseOverdue(deliveries)\n',
    replace: '',
    caughtBy: { file: 'test/simulation/world.test.ts', test: 'starts nothing of what had waited' },
  },
  {
    fault: 'a lease counts from the reply, not from the question',
    file: 'src/source/loop/run.ts',
    find: 'new Delivery(item, now, askedMs)',
    replace: 'new Delivery(item, now)',
    caughtBy: simulation,
  },
  {
    fault: 'who has lost his lease is not told',
    file: 'src/source/loop/delivery.ts',
    find: '    this.abort(new LeaseLostError(cause === undefined ? undefined : { cause }))\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a wait that began before the enqueue was accepted is called expired',
    file: 'src/work/waiters.ts',
    find: 'isKnown: false,',
    replace: 'isKnown: true,',
    caughtBy: simulation,
  },
  {
    fault: 'whoever waits is not polled for',
    file: 'src/work/waiters.ts',
    find: '      if (due.length > 0) await this.#look(due)\n',
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'a wait is written into an envelope that has left',
    file: 'src/work/handle.ts',
    find: 'if (draft === undefined || batch !== batches) return false',
    replace: 'if (draft === undefined) return false',
    caughtBy: peace('tells whoever waits'),
  },
  {
    fault: 'deadlines go by the clock of the machine',
    file: 'src/work/backend-time.ts',
    find: 'return this.#offset === undefined ? this.#clock.now() : Math.round(this.#clock.monotonic() + this.#offset)',
    replace: 'return this.#clock.now()',
    caughtBy: simulation,
  },
  {
    fault: 'a group opens anew whenever its work is enqueued again',
    file: 'src/work/define-work.ts',
    find: '    this.#groupId ??= mint()\n',
    replace: '    this.#groupId = mint()\n',
    caughtBy: { file: 'test/work/enqueued-again.test.ts', test: 'waits for the group' },
  },
  {
    fault: 'a nudge does not wake the worker',
    file: 'src/source/loop/run.ts',
    find: 'const offReady = this.#feed.onReady?.(ring)',
    replace: 'const offReady = this.#feed.onReady?.(() => undefined)',
    caughtBy: peace('starts work when it is due'),
  },
  {
    fault: 'a shutdown waits for what never ends',
    file: 'src/source/loop/run.ts',
    find: 'await Promise.race([this.#empty(), this.#deadline.reached])',
    replace: 'await this.#empty()',
    caughtBy: simulation,
  },
]

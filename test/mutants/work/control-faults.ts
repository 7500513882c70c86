import type { OneLineFault } from '../one-line-faults.js'

const by = (file: string, test: string) => ({ file: `test/work/controls/${file}.test.ts`, test })
const simulation = { file: 'test/simulation/native.slow.test.ts', test: 'keeps its promises' }

/** What the controls could get wrong. */
export const CONTROL_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a cancel leaves its group open',
    file: 'src/work/control/item-actions.ts',
    find: '        ...endEffects(envelope, false),\n',
    replace: "        ...endEffects(envelope, false).filter((effect) => effect.do !== 'leaveGroup'),\n",
    caughtBy: by('cancel', 'of what waits ends it without a run'),
  },
  {
    fault: 'a cancel notifies no gate',
    file: 'src/work/control/item-actions.ts',
    find: '        ...endEffects(envelope, false),\n',
    replace: "        ...endEffects(envelope, false).filter((effect) => effect.do === 'leaveGroup'),\n",
    caughtBy: by('cancel', 'reads and decides again'),
  },
  {
    fault: 'what the handler returns after a cancel counts',
    file: 'src/work/run/run-limits.ts',
    find: 'reason instanceof CancelledError || reason instanceof RunTimeoutError',
    replace: 'reason instanceof RunTimeoutError',
    caughtBy: by('cancel', 'of what runs in another process'),
  },
  {
    fault: 'a cancel arrives with the heartbeat only',
    file: 'src/work/worker/early-heartbeat.ts',
    find: 'if (concerned.length > 0) this.touch(concerned)',
    replace: 'if (concerned.length > 1e9) this.touch(concerned)',
    caughtBy: by('cancel', 'of what runs in another process'),
  },
  {
    fault: 'a cancelled item is begun again after a run that was not notified',
    file: 'src/backends/memory/commit/claim.ts',
    find: 'const cancelled = record.extras?.cancelled\n',
    replace: 'const cancelled = undefined\n',
    caughtBy: simulation,
  },
  {
    fault: 'a cancel that comes after the deadline is ignored',
    file: 'src/source/loop/delivery.ts',
    find: '    super.abort(reason)\n    this.onAbort?.(reason)\n',
    replace: '    if (!this.aborted) this.onAbort?.(reason)\n    super.abort(reason)\n',
    caughtBy: by('run-limits', 'a cancel counts though the signal has fired'),
  },
  {
    fault: 'a run that is out of time is not counted as a failed attempt',
    file: 'src/work/run/run-limits.ts',
    find: 'reason instanceof CancelledError || reason instanceof RunTimeoutError',
    replace: 'reason instanceof CancelledError',
    caughtBy: by('run-limits', 'fires its signal and counts as a failed attempt'),
  },
  {
    fault: 'the place of a handler that goes on is given away immediately',
    file: 'src/work/worker/doer-admission.ts',
    find: 'this.#o.placeFree(delivery.item) ?? []',
    replace: '[] as Promise<void>[]',
    caughtBy: by('run-limits', 'leaves a handler its place'),
  },
  {
    fault: 'a hung handler keeps its place forever',
    file: 'src/work/run/overruns.ts',
    find: "envelope.id, timeoutMs), 'queue')\n        resolve()\n",
    replace: "envelope.id, timeoutMs), 'queue')\n",
    caughtBy: by('run-limits', 'leaves a handler its place'),
  },
  {
    fault: 'a pause costs its items their place',
    file: 'src/backends/memory/commit/pauses.ts',
    find: '        queue.refile(message, now, undefined, undefined)\n',
    replace: '        queue.refile(message, now, now + (message.priority > 0 ? 50 : 0), undefined)\n',
    caughtBy: by('pause', 'of a queue holds everything in it'),
  },
  {
    fault: 'what is paused is handed out',
    file: 'src/backends/memory/commit/claim.ts',
    find: '!table.pauses.areNone && table.pauses',
    replace: "!table.pauses.areNone && owner.envelope.type !== 'narrow' && table.pauses",
    caughtBy: simulation,
  },
  {
    fault: 'an input is not checked again when it runs',
    file: 'src/work/run/run-handler.ts',
    find: "if ('problem' in checked) {",
    replace: "if ('nothing' in checked && 'problem' in checked) {",
    caughtBy: by('input', 'that is not valid when it runs is poison'),
  },
  {
    fault: 'children belong to the enqueue of their parent, not to its run',
    file: 'src/work/observe/tracing.ts',
    find: 'return carried === undefined ? item : {',
    replace: 'return item.envelope.trace !== undefined || carried === undefined ? item : {',
    caughtBy: by('tracing', 'go from the request to the enqueue'),
  },
  {
    fault: 'every progress report is sent by itself',
    file: 'src/work/run/progress.ts',
    find: '    if (this.#isResting) return\n',
    replace: '',
    caughtBy: by('progress', 'is sent together, once a second'),
  },
]

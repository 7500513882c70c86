import type { OneLineFault } from '../one-line-faults.js'

const by = (file: string, test: string) => ({ file: `test/work/controls/${file}.test.ts`, test })
const simulation = { file: 'test/simulation/native.slow.test.ts', test: 'keeps its promises' }

/** What the controls could get wrong. */
export const CONTROL_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a cancel leaves its group open',
    file: 'src/work/act.ts',
    find: '        ...tells(envelope, false),\n',
    replace: "        ...tells(envelope, false).filter((effect) => effect.do !== 'closeGroup'),\n",
    caughtBy: by('cancel', 'W25 of what waits ends it without a run'),
  },
  {
    fault: 'a cancel tells no gate',
    file: 'src/work/act.ts',
    find: '        ...tells(envelope, false),\n',
    replace: "        ...tells(envelope, false).filter((effect) => effect.do === 'closeGroup'),\n",
    caughtBy: by('cancel', 'looks again and chooses again'),
  },
  {
    fault: 'what the handler returns after a cancel counts',
    file: 'src/work/controls/run-limits.ts',
    find: 'reason instanceof CancelledError || reason instanceof RunTimeoutError',
    replace: 'reason instanceof RunTimeoutError',
    caughtBy: by('cancel', 'W25 of what runs in another process'),
  },
  {
    fault: 'a cancel is heard with the heartbeat only',
    file: 'src/work/controls/held-now.ts',
    find: 'if (concerned.length > 0) this.touch(concerned)',
    replace: 'if (concerned.length > 1e9) this.touch(concerned)',
    caughtBy: by('cancel', 'W25 of what runs in another process'),
  },
  {
    fault: 'a cancelled item is begun again after a run that did not hear of it',
    file: 'src/backends/memory/claim.ts',
    find: 'const cancelled = record.extras?.cancelled\n',
    replace: 'const cancelled = undefined\n',
    caughtBy: simulation,
  },
  {
    fault: 'a cancel that comes after the deadline is not heard',
    file: 'src/source/loop/delivery.ts',
    find: '    super.abort(reason)\n    this.onAbort?.(reason)\n',
    replace: '    if (!this.aborted) this.onAbort?.(reason)\n    super.abort(reason)\n',
    caughtBy: by('run-limits', 'a cancel is heard though the signal has fired'),
  },
  {
    fault: 'a run that is out of time is not counted as a failed attempt',
    file: 'src/work/controls/run-limits.ts',
    find: 'reason instanceof CancelledError || reason instanceof RunTimeoutError',
    replace: 'reason instanceof CancelledError',
    caughtBy: by('run-limits', 'W25 fires its signal and counts as a failed attempt'),
  },
  {
    fault: 'the place of a handler that goes on is given away at once',
    file: 'src/work/doer-admission.ts',
    find: 'this.#o.placeFree(delivery) ?? []',
    replace: '[] as Promise<void>[]',
    caughtBy: by('run-limits', 'leaves a handler its place'),
  },
  {
    fault: 'a hung handler keeps its place for ever',
    file: 'src/work/controls/overruns.ts',
    find: 'envelope.id, patienceMs))\n        resolve()\n',
    replace: 'envelope.id, patienceMs))\n',
    caughtBy: by('run-limits', 'leaves a handler its place'),
  },
  {
    fault: 'a pause costs its items their place',
    file: 'src/backends/memory/pauses.ts',
    find: '        queue.refile(message, now, undefined, undefined)\n',
    replace: '        queue.refile(message, now, now + (message.priority > 0 ? 50 : 0), undefined)\n',
    caughtBy: by('pause', 'of a queue holds everything in it'),
  },
  {
    fault: 'what is paused is handed out',
    file: 'src/backends/memory/claim.ts',
    find: '!book.pauses.areNone && book.pauses',
    replace: "!book.pauses.areNone && owner.envelope.type !== 'narrow' && book.pauses",
    caughtBy: simulation,
  },
  {
    fault: 'an input is not looked at again when it runs',
    file: 'src/work/runner.ts',
    find: "if ('problem' in checked) {",
    replace: "if ('nothing' in checked && 'problem' in checked) {",
    caughtBy: by('input', 'W25 that is not valid when it runs is poison'),
  },
  {
    fault: 'children belong to the enqueue of their parent, not to its run',
    file: 'src/work/controls/tracing.ts',
    find: 'return carried === undefined ? item : {',
    replace: 'return item.envelope.trace !== undefined || carried === undefined ? item : {',
    caughtBy: by('tracing', 'W25 go from the request to the enqueue'),
  },
  {
    fault: 'every word of progress is sent by itself',
    file: 'src/work/controls/progress-desk.ts',
    find: '    if (this.#isResting) return\n',
    replace: '',
    caughtBy: by('progress', 'goes together, once a second'),
  },
]

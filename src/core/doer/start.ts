import { describeValue } from '../text/describe-value.js'

/** A promise that is fulfilled: what is chained to it runs soon, but not before the caller is done. */
const SOON = Promise.resolve()

/**
 * Calls `run` a microtask later. Chained rather than queued together with others, because a chain keeps the caller's
 * AsyncLocalStorage context.
 */
export function soon(run: () => unknown): void {
  void SOON.then(run)
}

/** Runs `task` a microtask later and calls `settled` once it has ended, however it ended. */
export function startSoon(task: () => unknown, settled: () => void): void {
  soon(() => start(task, settled))
}

/** Runs `task` now. `settled` is never called before this returns, so that a row of failing tasks is no recursion. */
export function start(task: () => unknown, settled: () => void): void {
  let outcome: Promise<unknown>
  try {
    outcome = Promise.resolve(task())
  } catch {
    outcome = SOON
  }
  outcome.then(settled, settled)
}

/** Refuses what cannot be run, where the caller still sees it: once accepted, a task's error is swallowed. */
export function checkTask(task: unknown): asserts task is () => unknown {
  if (typeof task !== 'function')
    throw new TypeError(`doer.do(task): task must be a function, got ${describeValue(task)}`)
}

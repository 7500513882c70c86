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

/** What a task returns that has ended already: many of them cost one promise together. */
export const ENDED: Promise<void> = Promise.resolve()

/** Runs `task` a microtask later and calls `settled` once it has ended, however it ended. */
export function startSoon(task: () => unknown, settled: () => void): void {
  soon(() => start(task, settled))
}

/** Runs `task` now. `settled` is never called before this returns, so that a row of failing tasks is no recursion. */
export function start(task: () => unknown, settled: () => void): void {
  let outcome: unknown
  try {
    outcome = task()
  } catch {
    outcome = SOON
  }
  if (outcome === ENDED) settleSoon(settled)
  else Promise.resolve(outcome).then(settled, settled)
}

let settledSoon: (() => void)[] = []

function settleSoon(settled: () => void): void {
  if (settledSoon.push(settled) === 1) soon(settleAll)
}

function settleAll(): void {
  const all = settledSoon
  settledSoon = []
  for (const settled of all) settled()
}

/** Refuses what cannot be run, where the caller still sees it: once accepted, a task's error is swallowed. */
export function checkTask(task: unknown): asserts task is () => unknown {
  if (typeof task !== 'function')
    throw new TypeError(`doer.do(task): task must be a function, got ${describeValue(task)}`)
}

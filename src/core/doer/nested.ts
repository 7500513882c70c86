import { doWith } from './do-with.js'
import type { Doer } from './doer.js'

/** A doer whose tasks need a place of `outer` first, and then one of `inner`: a limit within a limit. */
export function nestedDoer(outer: Doer, inner: Doer): Doer {
  return {
    available: () => Math.min(outer.available(), inner.available()),
    do: (task, hints) => outer.do(() => doWith(inner, task, hints), hints),
    done: () => outer.done(),
    onAvailable: (listener) => {
      const offs = [outer.onAvailable?.(listener), inner.onAvailable?.(listener)]
      return () => {
        for (const off of offs) off?.()
      }
    },
    ...(outer.concurrency === undefined ? {} : { concurrency: outer.concurrency }),
  }
}

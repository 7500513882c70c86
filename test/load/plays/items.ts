import { setTimeout as sleep } from 'node:timers/promises'
import { defineWork } from 'millrace'
import type { Stage } from '../stage.js'

interface Item {
  readonly n: number
  readonly pad: string
}

/** Bytes of the input without its padding: names, quotes and a number. */
const BARE_BYTES = 20

/** The work of most plays: one type whose items are numbered, and whose handlers write down that they ran. */
export function itemsOf({ load, runs }: Stage) {
  const { handlerMs, resultBytes, inputBytes } = load
  const pad = 'x'.repeat(Math.max(0, inputBytes - BARE_BYTES))
  const item = defineWork('item', async ({ n }: Item, ctx) => {
    runs.start(n)
    if (handlerMs > 0) await sleep(handlerMs)
    runs.end(n)
    // A separate text for each: one that all share would cost nothing.
    return ctx.result(resultBytes === 0 ? undefined : String(n).padEnd(resultBytes, '.'))
  })
  const idOf = (n: number) => `item-${n}`
  const make = (n: number) => ({ ...item({ n, pad }), id: idOf(n) })
  return { item, make, idOf }
}

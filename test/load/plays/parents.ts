import { defineWork, type WorkSystem } from 'millrace'
import type { Outcome, Stage } from '../stage.js'

const CHILDREN = 3

/** Parents that hold a place while they wait for children, which need one. */
export async function parents(stage: Stage): Promise<Outcome> {
  const { load, runs } = stage
  let w: WorkSystem
  const child = defineWork('child', ({ n }: { readonly n: number }, ctx) => {
    runs.start(n)
    runs.end(n)
    return ctx.result(n)
  })
  const parent = defineWork('parent', async ({ n }: { readonly n: number }, ctx) => {
    runs.start(n)
    const own = Array.from({ length: CHILDREN }, (_, i) => child({ n: load.items + n * CHILDREN + i }))
    let sum = 0
    // Half of them ask for all children together, half for one after the other.
    if (n % 2 === 0) for (const value of await Promise.all(own.map((one) => w.enqueue(one)))) sum += Number(value)
    else for (const one of own) sum += Number(await w.enqueue(one))
    runs.end(n)
    return ctx.result(sum)
  })
  await stage.fill(load.items, (n) => parent({ n }))
  w = stage.system([parent, child])
  await stage.begin()
  w.start()
  const expected = load.items * (1 + CHILDREN)
  await stage.ended(expected)
  await stage.stop(w)
  return { expected }
}

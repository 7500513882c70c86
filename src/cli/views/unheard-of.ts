import type { Ops } from '../../ops/api.js'
import { clean } from '../terminal/clean.js'
import { didYouMean } from '../usage-error.js'

/** Why nothing was found, if a name is unknown: it was probably mistyped. */
export async function mistypedName(
  ops: Ops,
  { type, queue }: { readonly type?: string | undefined; readonly queue?: string | undefined },
): Promise<string | undefined> {
  if (type === undefined && queue === undefined) return undefined
  const { rows, workers } = await ops.overview()
  const types = new Set([...rows.map((row) => row.type), ...workers.flatMap((worker) => worker.types)])
  const queues = new Set([...rows.map((row) => row.queue), ...workers.flatMap((worker) => worker.queues)])
  for (const [what, name, known] of [
    ['type', type, types],
    ['queue', queue, queues],
  ] as const) {
    if (name === undefined || known.has(name)) continue
    return clean(`No item has the ${what} "${name}", and no worker serves it.${didYouMean(name, [...known])}`)
  }
  return undefined
}

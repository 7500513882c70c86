import { closestHint } from '../../core/text/did-you-mean.js'
import type { Ops } from '../../ops/api.js'
import { clean } from '../terminal/clean.js'

/** Why nothing was found, if a name is unknown: it was probably mistyped. */
export async function mistypedName(
  ops: Ops,
  selector: { readonly type?: string | undefined } | { readonly queue?: string | undefined },
): Promise<string | undefined> {
  const { type, queue }: { readonly type?: string | undefined; readonly queue?: string | undefined } = selector
  if (type === undefined && queue === undefined) return undefined
  const { rows, workers } = await ops.overview()
  const types = new Set([...rows.map((row) => row.type), ...workers.flatMap((worker) => worker.types)])
  const queues = new Set([...rows.map((row) => row.queue), ...workers.flatMap((worker) => worker.queues)])
  for (const [what, name, known] of [
    ['type', type, types],
    ['queue', queue, queues],
  ] as const) {
    if (name === undefined || known.has(name)) continue
    const use =
      what === 'type'
        ? `has the type "${name}", and no worker handles it`
        : `is on queue "${name}", and no worker serves it`
    return clean(`No item ${use}.${closestHint(name, [...known])}`)
  }
  return undefined
}

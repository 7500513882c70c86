import type { Ms } from '../../../core/time/time.js'
import type { SpiderContext } from '../context.js'
import { updateDispatch } from './dispatch-queue.js'

/** How many writs are read in one query. */
const PAGE = 200

/** How often the queue is held against the writs while Spider runs. */
const CHECK_EVERY_MS: Ms = 60_000

/** When a Spider checks its queue next, by its monotonic clock. */
const nextCheckAt = new WeakMap<SpiderContext, Ms>()

/**
 * Queues open writs that are missing from the queue: opened while no Spider ran, before their type had a template, or by a process that
 * has no template for their type.
 */
export async function queueOpenWrits(context: SpiderContext): Promise<void> {
  nextCheckAt.set(context, context.clock.monotonic() + CHECK_EVERY_MS)
  const types = [...context.templates.mappings.keys()]
  const open = [
    ['phase', '=', 'open'],
    ['type', 'IN', types],
  ] as const
  if (types.length === 0 || (await context.writs.count([...open])) === (await queuedOf(context, types))) return
  for (let last = ''; ; ) {
    const writs = await context.writs.find({ where: [...open, ['id', '>', last]], orderBy: ['id', 'asc'], limit: PAGE })
    await context.change(async () => {
      for (const { id } of writs) await updateDispatch(context, id, await context.writs.get(id))
    })
    if (writs.length < PAGE) return
    last = writs.at(-1)?.id ?? last
  }
}

/** How many open writs of these types are in the queue. A client does not say whether what it queues is of a type with a template. */
async function queuedOf({ dispatch }: SpiderContext, types: readonly string[]): Promise<number> {
  const known = await dispatch.count([
    ['isOpen', '=', true],
    ['type', 'IN', types],
  ])
  const byClients = await dispatch.count([
    ['isOpen', '=', false],
    ['type', 'IN', types],
    ['state', 'IN', ['ready', 'delayed', 'held']],
  ])
  return known + byClients
}

/**
 * The same, every so often. While two versions of a guild run, a process of the older one has no template for a type that only the newer
 * one has: it drops the writ from the queue, or opens it without queueing it.
 */
export async function queueMissedWrits(context: SpiderContext): Promise<void> {
  if (context.clock.monotonic() >= (nextCheckAt.get(context) ?? 0)) await queueOpenWrits(context)
}

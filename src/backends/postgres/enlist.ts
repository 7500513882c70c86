import { MillraceError } from '../../core/error.js'
import type { CommitResult, Effect, Settlement } from '../../ports/settlement.js'
import type { EncodedBatch } from './encode.js'

/**
 * Why a settlement does not belong into a transaction of the user. That only adds: one new item with its place in its group, and the
 * gates that hold it. Whatever else a settlement can say changes rows that are there, and would keep them locked for as long as
 * the user likes. Nothing that the public API offers with `tx` comes here.
 */
export function foreignTo({ guard, effects }: Settlement): CommitResult | undefined {
  const pushes = effects.filter((effect) => effect.do === 'enqueue')
  const [only] = pushes
  const isNew =
    guard.by === 'absent' && pushes.length === 1 && only?.item.id === guard.id && only.leasedTo === undefined
  const adds = (effect: Effect): boolean =>
    effect.do === 'enqueue' ||
    effect.do === 'openGate' ||
    (effect.do === 'joinGroup' && effect.groupId === only?.item.groupId && effect.count === 1)
  const opens = effects.filter((effect) => effect.do === 'joinGroup').length
  if (isNew && opens <= 1 && effects.every(adds)) return undefined
  const error = new MillraceError(
    'NOT_SUPPORTED',
    'A transaction of yours can only add items, one to each settlement, and their gates. Commit anything else without it.',
  )
  return { kind: 'failed', error }
}

/** What `enlist` reads of a batch: no item counts as the only member of its group, since items that come meanwhile are not seen. */
export function additionsOf(batch: readonly Settlement[], { roots, gates, tags, ready }: EncodedBatch): object {
  // Workers that serve the queue of a gate have to check it.
  const woken = new Map((ready as [string, number][] | undefined) ?? [])
  for (const { effects } of batch) {
    for (const effect of effects) if (effect.do === 'enqueue' && effect.hold?.by === 'gate') woken.set(effect.queue, 0)
  }
  return {
    roots: roots?.map((root) => ({ ...root, single: false })),
    gates,
    tags,
    ready: woken.size === 0 ? undefined : [...woken],
  }
}

import { defaultCodec } from '../../core/codec/codec.js'
import { BrokenPromiseError } from './errors.js'
import type { Wait } from './history.js'
import type { Aftermath } from './invariants.js'

/** Every wait in a surviving process has settled, with what the backend stores. */
export function checkWaits(after: Aftermath): void {
  for (const wait of after.history.waits) {
    // A count that is off keeps a group open, or closes it early.
    if (wait.kind === 'group' && !after.history.areCountsExact) continue
    const who = `${wait.process}, waiting for the ${wait.kind} of ${wait.id},`
    if (wait.settled === undefined) {
      if (after.survivors.has(wait.process)) throw new BrokenPromiseError('every wait settles', `${who} never settled`)
    } else if ('value' in wait.settled) {
      const truth = wait.kind === 'result' ? after.views.get(wait.id)?.result : after.groups.get(wait.groupId)?.value
      const got = wait.settled.value === undefined ? undefined : defaultCodec.stringify(wait.settled.value)
      if (got !== truth && isKept(after, wait) && isSure(after, wait)) {
        throw new BrokenPromiseError('a wait settles with the truth', `${who} got ${got}, and it is ${truth}`)
      }
    } else checkRejection(after, wait, wait.settled.error, who)
  }
}

function checkRejection(after: Aftermath, wait: Wait, error: unknown, who: string): void {
  // It may give up, and whose enqueue failed has nothing to wait for.
  if (wait.isLimited || after.history.items.get(wait.id)?.refusals.includes(error)) return
  const view = after.views.get(wait.id)
  if (view === undefined) return
  const isDead = wait.kind === 'result' && view.status === 'dead'
  if (!isDead) {
    const text = error instanceof Error ? error.message : String(error)
    throw new BrokenPromiseError('a wait settles with the truth', `${who} got "${text}", and it is ${view.status}`)
  }
}

/** Nothing fences a plain store: a run that lost its lease may write after the run that ended the item. */
function isSure({ history, views }: Aftermath, { groupId }: Wait): boolean {
  if (history.isExact) return true
  for (const [id, { envelope, status }] of views) {
    const runs = history.items.get(id)?.runs.length ?? 0
    if (envelope.groupId === groupId && (runs > 1 || status === 'dead')) return false
  }
  return true
}

function isKept(after: Aftermath, { kind, id, groupId }: Wait): boolean {
  return kind === 'result' ? after.views.has(id) : after.groups.has(groupId)
}

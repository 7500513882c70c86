import { MillraceError } from '../../src/core/error.js'
import type { Ms } from '../../src/core/time.js'
import type { Effect, Settlement } from '../../src/ports/settlement.js'

type Of<K extends Effect['do']> = Extract<Effect, { do: K }>
const DAY: Ms = 86_400_000
const NONE: never[] = []

export type Ending = Of<'finish'> | Of<'park'> | Of<'retryAt'>

/** The effects of one settlement by what they touch. A settlement is atomic, so the order inside it has no meaning. */
export interface SortedEffects {
  readonly pushes: readonly Of<'push'>[]
  /** What becomes of the leased item. */
  readonly ending: Ending | undefined
  /** How long what ends here is kept, and the record of a group that it closes. */
  readonly keepMs: Ms
  /** What the settlement adds to the open count of each group, all in all. */
  readonly moves: ReadonlyMap<string, number>
  readonly contributions: readonly Of<'contribute'>[]
  readonly gates: readonly Of<'openGate'>[]
  readonly tells: readonly Of<'tellGate'>[]
}

export function sortEffects(settlement: Settlement): SortedEffects {
  // Most settlements have one or two effects of a kind, and none of most kinds.
  let pushes: Of<'push'>[] = NONE
  let contributions: Of<'contribute'>[] = NONE
  let gates: Of<'openGate'>[] = NONE
  let tells: Of<'tellGate'>[] = NONE
  const moves = new Map<string, number>()
  let ending: Ending | undefined
  for (const effect of settlement.effects) {
    switch (effect.do) {
      case 'push':
        if (effect.heldBy !== undefined) throw notTraced('push with heldBy')
        if (pushes === NONE) pushes = [effect]
        else pushes.push(effect)
        break
      case 'finish':
      case 'park':
      case 'retryAt':
        ending = effect
        break
      case 'openGroup':
        moves.set(effect.groupId, (moves.get(effect.groupId) ?? 0) + effect.by)
        break
      case 'closeGroup':
        moves.set(effect.groupId, (moves.get(effect.groupId) ?? 0) - effect.by)
        break
      case 'contribute':
        if (contributions === NONE) contributions = [effect]
        else contributions.push(effect)
        break
      case 'openGate':
        if (gates === NONE) gates = [effect]
        else gates.push(effect)
        break
      case 'tellGate':
        if (tells === NONE) tells = [effect]
        else tells.push(effect)
        break
      default:
        throw notTraced(effect.do)
    }
  }
  if (settlement.guard.by === 'lease' && ending?.id !== settlement.guard.lease.id) {
    throw new MillraceError('NOT_TRACED', 'A settlement by lease must finish, park or retry the item that it leased.')
  }
  const keepMs = ending === undefined || ending.do === 'retryAt' ? DAY : ending.keepMs
  return { pushes, ending, keepMs, moves, contributions, gates, tells }
}

/** The guard as the tracers know it: a lease, or the absence of an id. */
export function tracedGuard(settlement: Settlement): { readonly id: string; readonly token: string | undefined } {
  const { guard } = settlement
  if (guard.by === 'lease') return { id: guard.lease.id, token: guard.lease.token }
  if (guard.by === 'absent') return { id: guard.id, token: undefined }
  throw notTraced(`guard ${guard.by}`)
}

function notTraced(what: string): MillraceError {
  return new MillraceError('NOT_TRACED', `The tracer does not do "${what}": only enqueue, claim and settle.`)
}

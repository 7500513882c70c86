import type { Ms } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { Effect, Settlement } from '../../ports/settlement.js'

export type Of<K extends Effect['do']> = Extract<Effect, { do: K }>
export type EndingEffect = Of<'finish'> | Of<'park'> | Of<'retryAt'> | Of<'release'>
type RareEffect = Of<'reopen' | 'erase' | 'cancel' | 'schedule' | 'pause' | 'resume' | 'log' | 'notify'>

const DAY: Ms = 86_400_000
const NONE: never[] = []

/** The effects of one settlement by what they touch. A settlement is atomic, so the order inside it has no meaning. */
export interface SortedEffects {
  readonly pushes: readonly Of<'push'>[]
  /** What becomes of the item. */
  readonly ending: EndingEffect | undefined
  /** Further items that end, which only people's settlements have. */
  readonly moreEndings: readonly EndingEffect[]
  readonly attempts: readonly Of<'recordAttempt'>[]
  /** How long what ends here is kept, and the record of a group that it closes. */
  readonly keepMs: Ms
  /** What the settlement adds to the open count of each group, all in all. */
  readonly moves: ReadonlyMap<string, number>
  readonly contributions: readonly Of<'contribute'>[]
  readonly gates: readonly Of<'openGate'>[]
  readonly tells: readonly Of<'tellGate'>[]
  readonly rare: readonly RareEffect[]
}

export function sortEffects({ effects }: Settlement): SortedEffects {
  // Most settlements have one or two effects of a kind, and none of most kinds.
  let pushes: Of<'push'>[] = NONE
  let attempts: Of<'recordAttempt'>[] = NONE
  let moreEndings: EndingEffect[] = NONE
  let contributions: Of<'contribute'>[] = NONE
  let gates: Of<'openGate'>[] = NONE
  let tells: Of<'tellGate'>[] = NONE
  let rare: RareEffect[] = NONE
  const moves = new Map<string, number>()
  let ending: EndingEffect | undefined
  let keepMs: Ms | undefined
  for (const effect of effects) {
    switch (effect.do) {
      case 'push':
        pushes = added(pushes, effect)
        break
      case 'finish':
      case 'park':
      case 'retryAt':
      case 'release':
        if (ending === undefined) ending = effect
        else moreEndings = added(moreEndings, effect)
        if (effect.do === 'finish' || effect.do === 'park') keepMs ??= effect.keepMs
        break
      case 'recordAttempt':
        attempts = added(attempts, effect)
        break
      case 'openGroup':
        moves.set(effect.groupId, (moves.get(effect.groupId) ?? 0) + effect.by)
        break
      case 'closeGroup':
        moves.set(effect.groupId, (moves.get(effect.groupId) ?? 0) - effect.by)
        break
      case 'contribute':
        contributions = added(contributions, effect)
        break
      case 'openGate':
        gates = added(gates, effect)
        break
      case 'tellGate':
        tells = added(tells, effect)
        break
      case 'reopen':
      case 'erase':
      case 'cancel':
      case 'schedule':
      case 'pause':
      case 'resume':
      case 'log':
      case 'notify':
        rare = added(rare, effect)
        break
      default:
        return unreachable(effect)
    }
  }
  return { pushes, ending, moreEndings, attempts, keepMs: keepMs ?? DAY, moves, contributions, gates, tells, rare }
}

function added<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one]
  list.push(one)
  return list
}

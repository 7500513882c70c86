import { MillraceError } from '../../core/error.js'
import { unreachable } from '../../core/unreachable.js'
import type { Effect } from '../settlement.js'

type Kind<D extends Effect['do']> = Extract<Effect, { do: D }>
export type Push = Kind<'push'>
export type End = Kind<'finish' | 'park'>
export type Outcome = End | Kind<'retryAt' | 'release' | 'reopen' | 'erase'>
export type Aside = Kind<'schedule' | 'cancel' | 'pause' | 'resume'>

/** The effects of one settlement, sorted by when the adapter has to do them. */
export interface Parts {
  readonly outcome: Outcome | undefined
  readonly pushes: readonly Push[]
  readonly opens: readonly { readonly groupId: string; readonly by: number }[]
  readonly closes: readonly { readonly groupId: string; readonly by: number }[]
  readonly contributions: readonly Kind<'contribute'>[]
  readonly gates: readonly Kind<'openGate'>[]
  readonly tells: readonly Kind<'tellGate'>[]
  readonly asides: readonly Aside[]
  /** Items to publish as ended. */
  readonly notified: readonly string[]
}

/**
 * Sorts the effects. Attempts and the log of people's actions have no place in three plain ports and are left out: a system
 * on them has no `inspect`.
 */
export function partsOf(effects: readonly Effect[]): Parts {
  const outcomes: Outcome[] = []
  const pushes: Push[] = []
  const opens = new Map<string, number>()
  const closes = new Map<string, number>()
  const contributions: Kind<'contribute'>[] = []
  const gates: Kind<'openGate'>[] = []
  const tells: Kind<'tellGate'>[] = []
  const asides: Aside[] = []
  const notified: string[] = []
  for (const effect of effects) {
    switch (effect.do) {
      case 'push':
        pushes.push(effect)
        break
      case 'finish':
      case 'park':
      case 'retryAt':
      case 'release':
      case 'reopen':
      case 'erase':
        outcomes.push(effect)
        break
      case 'openGroup':
        opens.set(effect.groupId, (opens.get(effect.groupId) ?? 0) + effect.by)
        break
      case 'closeGroup':
        closes.set(effect.groupId, (closes.get(effect.groupId) ?? 0) + effect.by)
        break
      case 'contribute':
        contributions.push(effect)
        break
      case 'openGate':
        gates.push(effect)
        break
      case 'tellGate':
        tells.push(effect)
        break
      case 'notify':
        notified.push(...effect.ids)
        break
      case 'schedule':
      case 'cancel':
      case 'pause':
      case 'resume':
        asides.push(effect)
        break
      case 'recordAttempt':
      case 'log':
        break
      default:
        unreachable(effect)
    }
  }
  if (outcomes.length > 1)
    throw badSettlement(`it has ${outcomes.length} outcomes (${outcomes.map((one) => one.do).join(', ')})`)
  return {
    outcome: outcomes[0],
    pushes,
    opens: listed(opens),
    closes: listed(closes),
    contributions,
    gates,
    tells,
    asides,
    notified,
  }
}

export function badSettlement(what: string): MillraceError {
  return new MillraceError(
    'BAD_SETTLEMENT',
    `This settlement cannot be applied: ${what}. A settlement ends, retries or releases exactly one item.`,
  )
}

const listed = (counts: ReadonlyMap<string, number>) => [...counts].map(([groupId, by]) => ({ groupId, by }))

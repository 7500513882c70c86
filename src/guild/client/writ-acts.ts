import type { ClerkContext } from '../clerk/context.js'
import type { Machine } from '../clerk/types/state-machine.js'
import type { WritState } from '../clerk/types/writ-type.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import { isGateStuck, notBefore } from '../spider/dispatch/dispatch-queue.js'
import { spiderStatusOf } from '../spider/dispatch/writ-status.js'
import { WrongPhaseError } from './errors.js'

/** Opens a draft: from now on it may get a rig. */
export async function openWrit(context: ClerkContext, id: string): Promise<WritDoc> {
  const { writ, machine, state } = await read(context, id)
  if (state.classification !== 'initial')
    throw new WrongPhaseError('open', id, writ.phase, nextStep('open', writ, state))
  return context.step(writ, machine.postTo === machine.initial ? next(machine, state, 'active') : machine.postTo)
}

/** Ends a writ as cancelled, with those below it. One that is cancelled already is returned as it is. */
export async function cancelWrit(context: ClerkContext, id: string, reason: string | undefined): Promise<WritDoc> {
  const { writ, machine, state } = await read(context, id)
  if (machine.hasAttr(writ.phase, 'cancelled')) return writ
  if (state.classification === 'terminal')
    throw new WrongPhaseError('cancel', id, writ.phase, nextStep('cancel', writ, state))
  return context.step(writ, next(machine, state, 'cancelled'), reason === undefined ? {} : { resolution: reason })
}

/** Gives a stuck writ one more rig, whatever its cap says; one that waits for its next rig gets it without waiting any longer. */
export async function retryWrit(context: ClerkContext, id: string): Promise<WritDoc> {
  const { writ, machine, state } = await read(context, id)
  if (isStuck(writ, state)) {
    if (isGateStuck(writ)) throw new WrongPhaseError('retry', id, 'stuck', gateText(writ))
    return context.step(await withoutWait(context, writ), next(machine, state, 'active'))
  }
  const dueAt = notBefore(writ)
  if (state.classification === 'active' && dueAt !== undefined && dueAt > context.now())
    return withoutWait(context, writ)
  throw new WrongPhaseError('retry', id, writ.phase, nextStep('retry', writ, state))
}

/** Its own time has come, and what its last failure asked for is over: a person says so. */
async function withoutWait(context: ClerkContext, writ: WritDoc): Promise<WritDoc> {
  if (notBefore(writ) === undefined) return writ
  const { retryAt: _, ...rest } = spiderStatusOf(writ)
  const status = { ...writ.status, spider: rest }
  return context.writs.patch(writ.id, { runAt: undefined, status, updatedAt: context.now() })
}

async function read(context: ClerkContext, id: string) {
  const writ = await context.need(id)
  const machine = context.types.machine(writ.type)
  return { writ, machine, state: machine.state(writ.phase) }
}

const isStuck = ({ phase }: WritDoc, { attrs = [] }: WritState): boolean => phase === 'stuck' || attrs.includes('stuck')

/** The phase of that kind which is one step away; the type's own name for it where there is none, so that the Clerk refuses it. */
function next(machine: Machine, { allowedTransitions }: WritState, kind: 'active' | 'cancelled'): string {
  const fits = (name: string): boolean =>
    kind === 'cancelled' ? machine.hasAttr(name, 'cancelled') : machine.state(name).classification === 'active'
  return allowedTransitions.find(fits) ?? (kind === 'cancelled' ? 'cancelled' : 'open')
}

function nextStep(act: 'open' | 'cancel' | 'retry', writ: WritDoc, state: WritState): string {
  if (state.classification === 'terminal') return 'It has ended, and stays so: post a new writ.'
  if (state.classification === 'initial') return 'It is a draft: open it first.'
  if (isStuck(writ, state)) return act === 'open' ? 'Retry it: that gives it one more rig.' : ''
  return 'It is being worked on, or waits: its reasons say for what.'
}

function gateText(writ: WritDoc): string {
  const { stuckCause, blockerIds = [] } = spiderStatusOf(writ)
  const named = blockerIds.join(', ')
  return stuckCause === 'cycle'
    ? `It would be stuck again immediately, because these writs follow each other in a cycle: ${named}. Remove one of their links.`
    : `It would be stuck again immediately, because what it follows has failed: ${named}. Remove the link, or cancel it.`
}

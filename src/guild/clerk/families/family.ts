import { AsyncContext } from '../../../core/async-context.js'
import type { Clause } from '../../stacks/query/query.js'
import type { ChangeEvent } from '../../stacks/watch/events.js'
import type { ClerkContext } from '../context.js'
import { UnreachablePhaseError } from '../errors.js'
import type { FamilyAction, WritState } from '../types/writ-type.js'
import type { WritDoc } from '../writs/writ.js'

/** A cascade in progress: the writs still to be handled, and the one that it is moving right now. */
interface Cascade {
  readonly ended: WritDoc[]
  moving: string | undefined
}

/**
 * Lets parents and children end together, as their types define, in the transaction of the writ that ended: this is the Clerk's
 * phase-1 watcher of its own book.
 *
 * Each writ that a cascade moves is reported here again, inside that very move. It is then put in the cascade's list instead
 * of being handled immediately: else every generation would nest one write deeper, and a family of more than sixteen
 * could never be cancelled.
 */
export function familyWatcher(context: ClerkContext): (event: ChangeEvent<WritDoc>) => Promise<void> {
  const ambient = new AsyncContext<Cascade>()

  return async (event) => {
    if (event.type !== 'update' || event.entry.phase === event.prev.phase) return
    const { entry } = event
    if (!context.types.machine(entry.type).isTerminal(entry.phase)) return
    const above = ambient.getStore()
    if (above?.moving === entry.id) {
      above.ended.push(entry)
      return
    }
    const cascade: Cascade = { ended: [entry], moving: undefined }
    await ambient.run(cascade, async () => {
      for (const writ of cascade.ended) {
        await downward(writ, cascade)
        await upward(writ, cascade)
      }
    })
  }

  async function downward(writ: WritDoc, cascade: Cascade): Promise<void> {
    const machine = context.types.machine(writ.type)
    const action = machine.config.childrenBehavior?.parentTerminal
    if (action === undefined) return
    if (!machine.hasAttr(writ.phase, 'failure') && !machine.hasAttr(writ.phase, 'cancelled')) return
    for (const { id } of await context.writs.find({ where: [['parentId', '=', writ.id]] })) {
      // Read again: another watcher may have moved it since, on behalf of one of its siblings.
      const child = await context.need(id)
      if (!context.types.machine(child.type).isTerminal(child.phase)) await carryOut(child, action, writ, cascade)
    }
  }

  async function upward(writ: WritDoc, cascade: Cascade): Promise<void> {
    if (writ.parentId === undefined) return
    const parent = await context.need(writ.parentId, `parent of writ ${writ.id}, which should be`)
    const family = context.types.machine(parent.type)
    if (family.isTerminal(parent.phase)) return
    const machine = context.types.machine(writ.type)
    const { anyFailure, allSuccess } = family.config.childrenBehavior ?? {}
    if (anyFailure !== undefined && machine.hasAttr(writ.phase, 'failure')) {
      await lift(parent, anyFailure, writ, cascade)
    } else if (allSuccess !== undefined && machine.hasAttr(writ.phase, 'success')) {
      if (!context.isHeld(parent) && (await haveAllSucceeded(parent.id))) await lift(parent, allSuccess, writ, cascade)
      else await context.touch(parent)
    }
  }

  async function lift(parent: WritDoc, action: FamilyAction, child: WritDoc, cascade: Cascade): Promise<void> {
    const status = { ...parent.status, clerk: { triggeringChildId: child.id } }
    const noted = await context.writs.patch(parent.id, { status, updatedAt: context.now() })
    await carryOut(noted, action, child, cascade)
  }

  /** Brings a relative to where the action wants it, step by step over the shortest legal path. */
  async function carryOut(relative: WritDoc, action: FamilyAction, cause: WritDoc, cascade: Cascade): Promise<void> {
    const path = context.types.machine(relative.type).path(relative.phase, action.transition)
    if (path === undefined) {
      throw new UnreachablePhaseError(relative.id, relative.type, relative.phase, action.transition)
    }
    const resolution = action.resolution ?? (action.copyResolution === true ? cause.resolution : undefined)
    let writ = relative
    for (const [i, phase] of path.entries()) {
      const isLast = i === path.length - 1
      cascade.moving = writ.id
      try {
        writ = await context.step(writ, phase, isLast && resolution !== undefined ? { resolution } : {})
      } finally {
        cascade.moving = undefined
      }
    }
  }

  /**
   * Whether every child has ended in success. While one is open this is a single query, however large the family is; the
   * children are counted only when no such child is found.
   */
  async function haveAllSucceeded(parentId: string): Promise<boolean> {
    const ofParent = ['parentId', '=', parentId] as const
    const { all } = context.types
    const good = new Set(all.flatMap((machine) => machine.phases(isSuccess)))
    const bad = new Set(all.flatMap((machine) => machine.phases(isNoSuccess)))
    // Phases that are a success in no type. Without naming types, so that one small part of one index answers.
    const neverGood = [...bad].filter((phase) => !good.has(phase))
    for (const phases of chunks(neverGood, VALUES)) {
      const [open] = await context.writs.find({ where: [ofParent, ['phase', 'IN', phases]], limit: 1 })
      const machine = all.find(({ config }) => config.name === open?.type)
      if (open !== undefined && machine?.phases(isNoSuccess).includes(open.phase)) return false
    }
    const countIn = async (fits: (state: WritState) => boolean): Promise<number> => {
      const clauses = all.flatMap(({ config, phases }) =>
        chunks(phases(fits), VALUES).map(
          (some): Clause => [ofParent, ['type', '=', config.name], ['phase', 'IN', some]],
        ),
      )
      let sum = 0
      for (const or of chunks(clauses, CLAUSES)) sum += await context.writs.count({ or })
      return sum
    }
    if ((await countIn(isSuccess)) === (await context.writs.count([ofParent]))) return true
    if ((await countIn(isNoSuccess)) > 0) return false
    // A child whose type is not loaded here, or whose phase its type does not have: whether it succeeded is not known.
    for (const { type, phase } of await context.writs.find({ where: [ofParent] }))
      context.types.machine(type).state(phase)
    return true
  }
}

/** Whether a child of this writ has not ended. One query by phases, unless types disagree about what a phase is. */
export async function hasOpenChildren(context: ClerkContext, parentId: string): Promise<boolean> {
  const ofParent = ['parentId', '=', parentId] as const
  const { all } = context.types
  const isOpen = ({ type, phase }: Pick<WritDoc, 'type' | 'phase'>) => !context.types.machine(type).isTerminal(phase)
  const phases = [
    ...new Set(all.flatMap((machine) => machine.phases(({ classification }) => classification !== 'terminal'))),
  ]
  for (const some of chunks(phases, VALUES)) {
    const where = [ofParent, ['phase', 'IN', some] as const]
    const [first] = await context.writs.find({ where, limit: 1 })
    if (first === undefined) continue
    if (isOpen(first) || (await context.writs.find({ where })).some(isOpen)) return true
  }
  return false
}

/** How many values and how many clauses one question has at most: a store refuses those that are too long. */
const VALUES = 50
const CLAUSES = 20

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))
}

const isSuccess = ({ classification, attrs = [] }: WritState) =>
  classification === 'terminal' && attrs.includes('success')
const isNoSuccess = (state: WritState) => !isSuccess(state)

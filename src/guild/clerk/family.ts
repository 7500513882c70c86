import { AsyncLocalStorage } from 'node:async_hooks'
import type { ChangeEvent } from '../stacks/events.js'
import type { Clause } from '../stacks/query.js'
import type { Desk } from './desk.js'
import { UnreachablePhaseError } from './errors.js'
import type { WritDoc } from './writ.js'
import type { FamilyAction, WritState } from './writ-type.js'

/** A cascade on its way: who has still to be looked at, and whom it is moving right now. */
interface Cascade {
  readonly ended: WritDoc[]
  moving: string | undefined
}

/**
 * Lets parents and children end together, as their types say, in the transaction of the writ that ended: this is the Clerk's
 * phase-1 watcher of its own book.
 *
 * Each writ that a cascade moves is reported here again, inside that very move. It is then put in the cascade's list instead
 * of being looked at on the spot: else every generation would nest one write deeper, and a family of more than sixteen
 * could never be cancelled.
 */
export function familyWatcher(desk: Desk): (event: ChangeEvent<WritDoc>) => Promise<void> {
  const ambient = new AsyncLocalStorage<Cascade>()

  return async (event) => {
    if (event.type !== 'update' || event.entry.phase === event.prev.phase) return
    const { entry } = event
    if (!desk.types.machine(entry.type).isTerminal(entry.phase)) return
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
    const machine = desk.types.machine(writ.type)
    const action = machine.config.childrenBehavior?.parentTerminal
    if (action === undefined) return
    if (!machine.hasAttr(writ.phase, 'failure') && !machine.hasAttr(writ.phase, 'cancelled')) return
    for (const { id } of await desk.writs.find({ where: [['parentId', '=', writ.id]] })) {
      // Read again: a watcher of somebody else may have moved it since, on behalf of one of its siblings.
      const child = await desk.need(id)
      if (!desk.types.machine(child.type).isTerminal(child.phase)) await carryOut(child, action, writ, cascade)
    }
  }

  async function upward(writ: WritDoc, cascade: Cascade): Promise<void> {
    if (writ.parentId === undefined) return
    const parent = await desk.need(writ.parentId, `parent of writ ${writ.id}, which should be`)
    const family = desk.types.machine(parent.type)
    if (family.isTerminal(parent.phase)) return
    const machine = desk.types.machine(writ.type)
    const { anyFailure, allSuccess } = family.config.childrenBehavior ?? {}
    if (anyFailure !== undefined && machine.hasAttr(writ.phase, 'failure')) {
      await lift(parent, anyFailure, writ, cascade)
    } else if (allSuccess !== undefined && machine.hasAttr(writ.phase, 'success')) {
      if (await haveAllSucceeded(parent.id)) await lift(parent, allSuccess, writ, cascade)
      else await desk.touch(parent)
    }
  }

  async function lift(parent: WritDoc, action: FamilyAction, child: WritDoc, cascade: Cascade): Promise<void> {
    const status = { ...parent.status, clerk: { triggeringChildId: child.id } }
    const noted = await desk.writs.patch(parent.id, { status, updatedAt: desk.now() })
    await carryOut(noted, action, child, cascade)
  }

  /** Brings a relative to where the action wants it, step by step over the shortest legal path. */
  async function carryOut(relative: WritDoc, action: FamilyAction, cause: WritDoc, cascade: Cascade): Promise<void> {
    const path = desk.types.machine(relative.type).path(relative.phase, action.transition)
    if (path === undefined) {
      throw new UnreachablePhaseError(relative.id, relative.type, relative.phase, action.transition)
    }
    const resolution = action.resolution ?? (action.copyResolution === true ? cause.resolution : undefined)
    let writ = relative
    for (const [i, phase] of path.entries()) {
      const isLast = i === path.length - 1
      cascade.moving = writ.id
      try {
        writ = await desk.step(writ, phase, isLast && resolution !== undefined ? { resolution } : {})
      } finally {
        cascade.moving = undefined
      }
    }
  }

  /**
   * Whether every child has ended in success. While one is under way this is a single look, however large the family is; the
   * children are counted only when no such child is found.
   */
  async function haveAllSucceeded(parentId: string): Promise<boolean> {
    const ofParent = ['parentId', '=', parentId] as const
    const { all } = desk.types
    const good = new Set(all.flatMap((machine) => machine.phases(isSuccess)))
    const bad = new Set(all.flatMap((machine) => machine.phases(isNoSuccess)))
    // Phases that are a success in no type. Without naming types, so that one small part of one index answers.
    const neverGood = [...bad].filter((phase) => !good.has(phase))
    for (const phases of chunks(neverGood, VALUES)) {
      const [open] = await desk.writs.find({ where: [ofParent, ['phase', 'IN', phases]], limit: 1 })
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
      for (const or of chunks(clauses, CLAUSES)) sum += await desk.writs.count({ or })
      return sum
    }
    if ((await countIn(isSuccess)) === (await desk.writs.count([ofParent]))) return true
    if ((await countIn(isNoSuccess)) > 0) return false
    // A child whose type is not loaded here, or whose phase its type does not have: nobody can say whether it succeeded.
    for (const { type, phase } of await desk.writs.find({ where: [ofParent] })) desk.types.machine(type).state(phase)
    return true
  }
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

import type { LinkDoc, WritDoc } from '../../clerk/writs/writ.js'
import type { SpiderContext } from '../context.js'

/** Whether the links of a writ let it have a rig. */
export type LinkGate =
  | { readonly kind: 'free' }
  /** Something that it follows has not ended, or is not there. */
  | { readonly kind: 'held'; readonly blockerIds: readonly string[] }
  | { readonly kind: 'failed'; readonly blockerIds: readonly string[] }
  /** It follows itself, or reaches writs that do; these are they. */
  | { readonly kind: 'cycle'; readonly memberIds: readonly string[] }

/** Reads a writ's links. Writs that have ended hold nothing back, so nothing beyond them is read. */
export async function linkGateOf(context: SpiderContext, writ: WritDoc): Promise<LinkGate> {
  const targetIds = await followed(context, writ.id)
  if (targetIds.length === 0) return { kind: 'free' }
  const failed: string[] = []
  const held: string[] = []
  for (const id of targetIds) {
    const target = await context.writs.get(id)
    if (target?.phase === 'failed') failed.push(id)
    else if (target === null || !context.clerk.isTerminal(target)) held.push(id)
  }
  const memberIds = held.length === 0 ? undefined : await writCycleFrom(context, writ.id)
  if (memberIds !== undefined) return { kind: 'cycle', memberIds }
  if (failed.length > 0) return { kind: 'failed', blockerIds: failed }
  return held.length > 0 ? { kind: 'held', blockerIds: held } : { kind: 'free' }
}

/** The writs that this one follows, in the order of their links. */
async function followed(context: SpiderContext, writId: string): Promise<string[]> {
  const links = await context.links.find({
    where: [['sourceId', '=', writId]],
    orderBy: [
      ['createdAt', 'asc'],
      ['id', 'asc'],
    ],
  })
  return [...new Set(links.filter((link) => isGate(context, link)).map(({ targetId }) => targetId))]
}

/** Whether a link holds its source back. */
export function isGate({ config }: SpiderContext, { kind }: Pick<LinkDoc, 'kind'>): boolean {
  return kind !== null && config.gateKinds.includes(kind)
}

/** The members of a circle that can be reached from here, over writs that have not ended; a diamond is none. */
export async function writCycleFrom(context: SpiderContext, startId: string): Promise<string[] | undefined> {
  interface Step {
    readonly id: string
    readonly left: string[]
  }
  const done = new Set<string>()
  const path: Step[] = []
  const enter = async (id: string): Promise<void> => {
    const writ = await context.writs.get(id)
    const isOver = writ === null || context.clerk.isTerminal(writ)
    path.push({ id, left: isOver ? [] : (await followed(context, id)).reverse() })
  }
  await enter(startId)
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    const next = step.left.pop()
    if (next === undefined) {
      done.add(step.id)
      path.pop()
      continue
    }
    const at = path.findIndex(({ id }) => id === next)
    if (at >= 0) return path.slice(at).map(({ id }) => id)
    if (!done.has(next)) await enter(next)
  }
  return undefined
}

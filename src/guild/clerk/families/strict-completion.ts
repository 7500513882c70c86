import type { ClerkContext } from '../context.js'
import { OpenDescendantsError } from '../errors.js'
import type { WritDoc } from '../writs/writ.js'

/** So many are named. */
const NAMED = 5

/** Throws while something below the writ has not ended, at any depth: also below what has ended itself. */
export async function openDescendants(
  context: Pick<ClerkContext, 'writs' | 'types'>,
  writ: WritDoc,
  to: string,
): Promise<void> {
  const parents = [writ.id]
  for (const parentId of parents) {
    const children = await context.writs.find({ where: [['parentId', '=', parentId]] })
    const open = children.filter(({ type, phase }) => !context.types.machine(type).isTerminal(phase))
    if (open.length > 0) {
      const named = open.slice(0, NAMED).map(({ id }) => id)
      throw new OpenDescendantsError(writ.id, to, open.length > NAMED ? [...named, '…'] : named)
    }
    parents.push(...children.map(({ id }) => id))
  }
}

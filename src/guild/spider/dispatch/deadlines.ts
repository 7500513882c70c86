import { errorMessage } from '../../../core/text/error-text.js'
import type { ClerkApi } from '../../clerk/api.js'
import type { WritDoc } from '../../clerk/writs/writ.js'
import { isConflict } from '../../stacks/errors.js'
import type { CrawlResult } from '../api.js'
import type { SpiderContext } from '../context.js'
import { cancelNewest } from './cancel-rigs.js'

/** When a deadline is tried again that could not be enforced. */
const AGAIN_MS = 60_000

/** Stores when a writ has to have ended. A draft is not held to its deadline. */
export async function updateDeadline(
  context: Pick<SpiderContext, 'deadlines'> & { readonly clerk: Pick<ClerkApi, 'isTerminal' | 'isInitial'> },
  id: string,
  writ: WritDoc | null,
): Promise<void> {
  const row = await context.deadlines.get(id)
  const dueAt =
    writ === null || context.clerk.isTerminal(writ) || context.clerk.isInitial(writ) ? undefined : writ.deadline
  if (dueAt === undefined) {
    if (row !== null) await context.deadlines.delete(id)
  } else if (row?.dueAt !== dueAt) await context.deadlines.put({ id, dueAt })
}

/** Lets the first writ fail whose deadline has passed, and ends its rig. */
export async function expireNext(context: SpiderContext): Promise<CrawlResult | null> {
  for (;;) {
    const due = { where: [['dueAt', '<=', context.now()]], orderBy: ['dueAt', 'asc'], limit: context.width } as const
    const first = context.pick(await context.deadlines.find(due))
    if (first === undefined) return null
    try {
      const result = await context.change(() => expire(context, first.id))
      if (result !== null) return result
    } catch (error) {
      if (isConflict(error)) throw error
      // A plugin or a rule of the Clerk objects. The others must not wait for it.
      const message = `The deadline of writ ${first.id} could not be enforced: ${errorMessage(error)}`
      context.warn({ code: 'DEADLINE_FAILED', message, error })
      await context.change(async () => {
        if ((await context.deadlines.get(first.id)) !== null)
          await context.deadlines.patch(first.id, { dueAt: context.later(AGAIN_MS) })
      })
    }
  }
}

async function expire(context: SpiderContext, writId: string): Promise<CrawlResult | null> {
  const row = await context.deadlines.get(writId)
  if (row === null || row.dueAt > context.now()) return null
  const writ = await context.writs.get(writId)
  if (writ?.deadline === undefined || context.clerk.isTerminal(writ)) {
    await context.deadlines.delete(writId)
    return null
  }
  const resolution = `Its deadline has passed: ${writ.deadline}`
  await context.clerk.transition(writId, failurePhase(context, writ), { resolution })
  await cancelNewest(context, writId, `The deadline of writ ${writId} has passed`)
  return { action: 'writ-expired', writId }
}

/** The phase in which a writ of this type has failed. Types of plugins may call it otherwise. */
function failurePhase({ clerk }: SpiderContext, { type }: WritDoc): string {
  const { states } = clerk.getWritTypeConfig(type)
  const failed = states.find(({ classification, attrs }) => classification === 'terminal' && attrs?.includes('failure'))
  return failed?.name ?? 'failed'
}

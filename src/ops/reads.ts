import { integerOption, stringOption } from '../core/options.js'
import type { Redacted } from '../core/text/redact.js'
import type { Actions } from './actions/open-actions.js'
import type { Ops } from './api.js'
import type { OpsContext } from './context.js'
import { readOverview } from './fleet/overview.js'
import { readPreview } from './fleet/preview.js'
import { readSchedules } from './fleet/schedules.js'
import { readWorkers } from './fleet/workers.js'
import type { GuildStacks } from './guild/books.js'
import { countWritsOf, openGuildReads } from './guild/guild-reads.js'
import type { WritActions } from './guild/writ-actions.js'
import { explain } from './items/explain.js'
import { readExplainFacts } from './items/explain-facts.js'
import { findId } from './items/find-id.js'
import { readItem } from './items/item.js'
import { readListQuery } from './items/item-query.js'
import { listedItem } from './items/listed-item.js'
import { withListedError, withShownSample } from './items/redacted.js'
import type { LetterOps } from './letters/api.js'

/** The queries of {@link Ops}. */
export type Reads = Omit<Ops, keyof Actions | keyof WritActions | keyof LetterOps | 'audit'>

const FAILURE_GROUPS = 50

export function openReads(
  context: OpsContext,
  { redacted, stacks }: { readonly redacted: Redacted; readonly stacks: GuildStacks | undefined },
): Reads {
  const explained = async (id: string) =>
    explain(await readExplainFacts(context, redacted, stringOption('explain(id)', id)))
  return {
    async overview() {
      const work = readOverview(context)
      if (stacks === undefined) return work
      const writs = countWritsOf(stacks)
      return { ...(await work), writs: await writs }
    },
    counts: async () => context.inspect('counts').counts(),
    async list(query) {
      const asked = readListQuery(query)
      const [page, at] = await Promise.all([context.inspect('list').list(asked), context.now()])
      const items = page.items.map((view) => listedItem(withListedError(view, redacted), at))
      return page.next === undefined ? { items } : { items, next: page.next }
    },
    findId: async (given) => findId(context, stringOption('findId(idOrPrefix)', given)),
    item: async (id) => readItem(context, redacted, stringOption('item(id)', id)),
    explain: explained,
    preview: (type, error, options) => readPreview(context, type, error, options),
    async failures(limit) {
      const most = integerOption('failures(limit)', limit, { min: 1, max: 1_000, default: FAILURE_GROUPS })
      const groups = await context.inspect('failures').failures(most)
      return groups.map((group) => withShownSample(group, redacted))
    },
    workers: () => readWorkers(context),
    schedules: (fires) => readSchedules(context, fires),
    ...openGuildReads(stacks, context.clock, redacted, explained),
  }
}

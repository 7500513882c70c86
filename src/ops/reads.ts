import { integerOption, stringOption } from '../core/options.js'
import type { Redacted } from '../core/redact.js'
import type { Ops } from './api.js'
import type { Desk } from './desk.js'
import { explain } from './explain.js'
import { readExplainFacts } from './explain-facts.js'
import type { GuildStacks } from './guild/books.js'
import { openGuildReads } from './guild/guild-reads.js'
import { readItem } from './item.js'
import { lineOf } from './item-line.js'
import { readListQuery } from './item-query.js'
import { readOverview } from './overview.js'
import { readPreview } from './preview.js'
import { withListedError, withShownSample } from './redacted.js'
import { readSchedules } from './schedules.js'
import { readWorkers } from './workers.js'

/** The part of {@link Ops} that only asks. */
export type Reads = Pick<
  Ops,
  | 'overview'
  | 'counts'
  | 'list'
  | 'item'
  | 'explain'
  | 'preview'
  | 'failures'
  | 'workers'
  | 'schedules'
  | 'writs'
  | 'writ'
  | 'rig'
>

const FAILURE_GROUPS = 50

export function openReads(
  desk: Desk,
  { redacted, stacks }: { readonly redacted: Redacted; readonly stacks: GuildStacks | undefined },
): Reads {
  const explained = async (id: string) =>
    explain(await readExplainFacts(desk, redacted, stringOption('explain(id)', id)))
  return {
    overview: () => readOverview(desk),
    counts: async () => desk.inspect('counts').counts(),
    async list(query) {
      const asked = readListQuery(query)
      const [page, at] = await Promise.all([desk.inspect('list').list(asked), desk.now()])
      const items = page.items.map((view) => lineOf(withListedError(view, redacted), at))
      return page.next === undefined ? { items } : { items, next: page.next }
    },
    item: async (id) => readItem(desk, redacted, stringOption('item(id)', id)),
    explain: explained,
    preview: (type, error, options) => readPreview(desk, type, error, options),
    async failures(limit) {
      const most = integerOption('failures(limit)', limit, { min: 1, max: 1_000, default: FAILURE_GROUPS })
      const groups = await desk.inspect('failures').failures(most)
      return groups.map((group) => withShownSample(group, redacted))
    },
    workers: () => readWorkers(desk),
    schedules: (fires) => readSchedules(desk, fires),
    ...openGuildReads(stacks, desk.clock, redacted, explained),
  }
}

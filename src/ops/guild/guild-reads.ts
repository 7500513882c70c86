import { MillraceError } from '../../core/error.js'
import { stringOption } from '../../core/options.js'
import type { Redacted } from '../../core/text/redact.js'
import type { Clock } from '../../core/time/clock.js'
import { listWrits } from '../../guild/clerk/writs/query.js'
import type { Ops, Overview } from '../api.js'
import type { Reason } from '../items/explain.js'
import { type GuildStacks, reading } from './books.js'
import { rigOf, rigReport } from './rig-report.js'
import { shownRig } from './shown.js'
import { writSummary } from './writ-facts.js'
import { readWrit } from './writ-report.js'

const PAGE = 50

/** How many writs are open, and how many need attention. */
export function countWritsOf(stacks: GuildStacks): Promise<NonNullable<Overview['writs']>> {
  return reading(stacks, async ({ writs }) => ({
    open: await writs.count([['phase', '=', 'open']]),
    stuck: await writs.count([['phase', '=', 'stuck']]),
  }))
}

/** The guild queries of ops. They only read documents: nothing is started, and no plugin is loaded. */
export function openGuildReads(
  given: GuildStacks | undefined,
  clock: Clock,
  redacted: Redacted,
  explained: (id: string) => Promise<readonly [Reason, ...Reason[]]>,
): Pick<Ops, 'writs' | 'writ' | 'rig' | 'watchers'> {
  const needed = (call: string): GuildStacks => {
    if (given !== undefined) return given
    throw new MillraceError(
      'NOT_SUPPORTED',
      `ops.${call}() reads the documents of a guild: pass openOps(backend, { stacks }), with what openStacks() of millrace/guild/stacks returned.`,
      { facts: { capability: 'stacks' } },
    )
  }
  return {
    async writs(query = {}) {
      const stacks = needed('writs')
      const found = await reading(stacks, (books) => listWrits(books, { limit: PAGE, ...query }))
      return found.map(writSummary)
    },
    async writ(id) {
      const stacks = needed('writ')
      return readWrit(stacks, clock.now(), stringOption('writ(id)', id), redacted, explained)
    },
    async rig(id) {
      const stacks = needed('rig')
      stringOption('rig(id)', id)
      const rig = await reading(stacks, (books) => rigOf(books, id))
      return rig === undefined ? undefined : rigReport(shownRig(rig, redacted))
    },
    async watchers() {
      return (await needed('watchers').watchers?.()) ?? []
    },
  }
}

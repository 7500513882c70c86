import { defined } from '../core/defined.js'
import { OptionTypeError } from '../core/options.js'
import { callable, clock, readOptions, unchecked } from '../core/read-options.js'
import { type Redact, redactedBy } from '../core/text/redact.js'
import { peek } from '../core/text/safe-read.js'
import type { Clock } from '../core/time/clock.js'
import type { OverPlainPorts } from '../ports/find-ledger.js'
import type { Ports } from '../ports/ports.js'
import { openActions } from './actions/open-actions.js'
import type { Ops } from './api.js'
import { openAudit } from './audit/audit.js'
import { openOpsContext } from './context.js'
import type { GuildStacks } from './guild/books.js'
import { openWritActions } from './guild/writ-actions.js'
import { withShownReason } from './items/redacted.js'
import { openLetterActions } from './letters/letter-actions.js'
import { openLetterReads } from './letters/read-letters.js'
import { openReads } from './reads.js'

/** Options of {@link openOps}. */
export interface OpsOptions {
  /** The prefix of the work system. Default `work:`. */
  readonly prefix?: string
  readonly clock?: Clock
  /**
   * What people may see of inputs, results, progress, group values and errors. Default: everything. If it throws, the value is withheld.
   */
  readonly redact?: Redact
  /**
   * The document store of a guild, for what concerns writs: what `openStacks` returned, or the `stacks` of a guild in this process. To
   * act on writs, a store of your own must not be sealed.
   */
  readonly stacks?: GuildStacks
}

/** Opens a backend for people and tools; the door hands in the adapter over plain ports. */
export function openOpsOn(overPlainPorts: OverPlainPorts, ports: Ports, options: OpsOptions = {}): Ops {
  const { redact, stacks, ...given } = readOptions('openOps', options, {
    prefix: unchecked,
    clock: clock(undefined),
    redact: callable<Redact>((value) => value),
    stacks: (path: string, stacks: unknown) => {
      if (stacks === undefined || typeof peek(stacks, 'transaction') === 'function')
        return stacks as GuildStacks | undefined
      throw new OptionTypeError(path, 'what openStacks() returned', stacks)
    },
  })
  const context = openOpsContext(overPlainPorts, ports, defined(given))
  const redacted = redactedBy(redact)
  const actions = openActions(context, stacks)
  return Object.freeze({
    ...openReads(context, { redacted, stacks }),
    ...actions,
    log: async (limit?: number) => (await actions.log(limit)).map((entry) => withShownReason(entry, redacted)),
    ...openWritActions(stacks, context.clock),
    ...openAudit(context),
    ...openLetterReads(context, redacted),
    ...openLetterActions(context),
  })
}

import { type Clock, isClock } from '../core/clock.js'
import { functionOption, OptionTypeError, optionsObject } from '../core/options.js'
import { type Redact, redactedBy } from '../core/redact.js'
import type { Ports } from '../ports/ports.js'
import { openActs } from './acts/index.js'
import type { Ops } from './api.js'
import { openAudit } from './audit/index.js'
import { openDesk } from './desk.js'
import type { GuildStacks } from './guild/books.js'
import { openReads } from './reads.js'

/** Options of {@link openOps}. */
export interface OpsOptions {
  /** The prefix of the system that is looked at. Default `work:`. */
  readonly prefix?: string
  readonly clock?: Clock
  /**
   * What people may see of inputs, results, progress, group values and errors. Default: all of it. What it throws on is withheld.
   */
  readonly redact?: Redact
  /** The document store of a guild, for `writs`, `writ` and `rig`: what `openStacks` returned, sealed or not. */
  readonly stacks?: GuildStacks
}

/**
 * Opens a backend, or three ports of your own, for people and tools: to ask and to act, from a process that runs no work itself.
 *
 * @example
 * ```ts
 * const ops = openOps(sqliteBackend({ file: 'work.db' }))
 * for (const { text, remedy } of await ops.explain('charge/o-3')) console.log(text, remedy)
 * ```
 */
export function openOps(ports: Ports, options: OpsOptions = {}): Ops {
  const { prefix, clock, redact, stacks } = optionsObject('openOps', options, ['prefix', 'clock', 'redact', 'stacks'])
  if (clock !== undefined && !isClock(clock)) throw new OptionTypeError('openOps.clock', 'a Clock', clock)
  if (stacks !== undefined && typeof stacks?.transaction !== 'function')
    throw new OptionTypeError('openOps.stacks', 'what openStacks() returned', stacks)
  const desk = openDesk(ports, {
    ...(prefix === undefined ? {} : { prefix }),
    ...(clock === undefined ? {} : { clock }),
  })
  const redacted = redactedBy(functionOption<Redact>('openOps.redact', redact, (value) => value))
  return Object.freeze({ ...openReads(desk, { redacted, stacks }), ...openActs(desk), ...openAudit(desk) })
}

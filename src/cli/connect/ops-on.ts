import type { Redact } from '../../core/text/redact.js'
import type { Clock } from '../../core/time/clock.js'
import type { StacksBackend } from '../../guild/stacks/backend.js'
import type { Ops } from '../../ops/api.js'
import type { Backend } from '../../ports/ports.js'

/** What a command needs besides the work on a backend. */
export interface Needs {
  /** The guild's documents, on the same database; `if there`: what there is of both. */
  readonly guild: boolean | 'if there'
  /** What may be shown of payloads and errors. Undefined: all of it. */
  readonly redact?: Redact | undefined
}

/** Closes what was opened, in reverse order. */
export class Closers {
  readonly #closers: (() => Promise<unknown>)[] = []

  add(close: () => Promise<unknown>): void {
    this.#closers.push(close)
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
  }
}

/** What there is on a backend. */
export interface Parts {
  readonly hasGuild: boolean
  readonly hasWork?: boolean
  readonly stacksOn: () => Promise<StacksBackend>
}

const LOG_LINES = 100

/** Opens ops on a backend, with the guild's documents if needed. Creates no tables. */
export async function opsOn(
  backend: Backend,
  clock: Clock,
  { redact }: Needs,
  closers: Closers,
  { hasGuild, hasWork = true, stacksOn }: Parts,
): Promise<Ops> {
  const { openOps } = await import('../../ops/index.js')
  const shown = redact === undefined ? { clock } : { clock, redact }
  if (!hasGuild) return openOps(backend, shown)
  const { openStacks } = await import('../../guild/stacks/stacks.js')
  const stacks = await openStacks({ backend: await stacksOn(), clock })
  closers.add(() => stacks.close())
  const ops = openOps(backend, { ...shown, stacks })
  if (hasWork) return ops
  // The documents of the guild are in a file of their own, without work.
  const { readGuildLog } = await import('../../ops/guild/guild-log.js')
  const { countWritsOf } = await import('../../ops/guild/guild-reads.js')
  const nothing = { rows: [], workers: [], paused: { queues: [], types: [] } }
  return {
    ...ops,
    log: (limit = LOG_LINES) => readGuildLog(stacks, limit),
    overview: async () => ({ at: clock.now(), ...nothing, writs: await countWritsOf(stacks) }),
  }
}

import type { Redact } from '../../core/text/redact.js'
import type { Clock } from '../../core/time/clock.js'
import type { StacksBackend } from '../../guild/stacks/backend.js'
import type { Ops } from '../../ops/api.js'
import type { Backend } from '../../ports/ports.js'

/** What a command needs besides the work on a backend. */
export interface Needs {
  /** The guild's documents, on the same database. */
  readonly guild: boolean
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

/** Opens ops on a backend, with the guild's documents if needed. Creates no tables. */
export async function opsOn(
  backend: Backend,
  clock: Clock,
  { guild, redact }: Needs,
  closers: Closers,
  stacksOn: () => Promise<StacksBackend>,
): Promise<Ops> {
  const { openOps } = await import('../../ops/index.js')
  const shown = redact === undefined ? { clock } : { clock, redact }
  if (!guild) return openOps(backend, shown)
  const { openStacks } = await import('../../guild/stacks/stacks.js')
  const stacks = await openStacks({ backend: await stacksOn(), clock })
  closers.add(() => stacks.close())
  return openOps(backend, { ...shown, stacks })
}

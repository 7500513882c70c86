import { AsyncLocalStorage } from 'node:async_hooks'
import { processWide } from '../../core/process/process-wide.js'
import { NoGuildError } from './errors.js'
import type { Guild } from './guild.js'

interface Place {
  /** In the order in which they were started. */
  running: Guild[]
  readonly bound: AsyncLocalStorage<Guild>
}

/** A plugin may bring its own copy of this package; its `guild()` has to find the guild that another copy started. */
const place = processWide('guild.current', (): Place => ({ running: [], bound: new AsyncLocalStorage<Guild>() }))

/**
 * The guild of this async context: the one bound by `runWithGuild`, else of those that run in this process the one that was
 * started last. Throws when there is none.
 */
export function guild(): Guild {
  const { bound, running } = place()
  const found = bound.getStore() ?? running.at(-1)
  if (found === undefined) throw new NoGuildError()
  return found
}

/**
 * Runs `fn` with `guild()` returning `g`, also after its awaits and in timers that it sets. The host runs every `start`,
 * `stop` and lifecycle handler like this, so several guilds in one process do not mix.
 */
export function runWithGuild<R>(g: Guild, fn: () => R): R {
  return place().bound.run(g, fn)
}

/** Sets the guild of the process. For the host and for tests. */
export function setGuild(g: Guild): void {
  const here = place()
  here.running = [...here.running.filter((other) => other !== g), g]
}

/** Forgets every guild of the process. For tests. */
export function clearGuild(): void {
  place().running = []
}

/** Forgets this one. If it was the guild of the process, that is now the one started before it which still runs. */
export function clearGuildIf(g: Guild): void {
  const here = place()
  here.running = here.running.filter((other) => other !== g)
}

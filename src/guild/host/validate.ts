import type { LoadedApparatus, LoadedKit, PluginFailure } from './plugin.js'

/** What has been loaded, and what could not be. */
export interface Loaded {
  readonly kits: readonly LoadedKit[]
  readonly apparatuses: readonly LoadedApparatus[]
  readonly failures: readonly PluginFailure[]
}

/**
 * Leaves out every plugin that cannot work: those that need something missing, those in a circle, and all that need one of
 * these. Each is reported once, with the first thing that was wrong.
 */
export function validated(loaded: Loaded): Loaded {
  const failures = new Map<string, string>()
  const fail = (id: string, reason: string) => {
    if (!failures.has(id)) failures.set(id, reason)
  }
  const kitIds = new Set(loaded.kits.map(({ id }) => id))
  const apparatusIds = new Set(loaded.apparatuses.map(({ id }) => id))
  const isMissing = (id: string) => !kitIds.has(id) && !apparatusIds.has(id)
  const missing = (id: string) =>
    loaded.failures.some((failure) => failure.id === id)
      ? `requires "${id}", which failed to load`
      : `requires "${id}", which is not installed`

  for (const { id, apparatus } of loaded.apparatuses) {
    for (const needed of apparatus.requires ?? []) if (isMissing(needed)) fail(id, missing(needed))
  }
  for (const { id, kit } of loaded.kits) {
    for (const needed of kit.requires ?? []) {
      if (isMissing(needed)) fail(id, missing(needed))
      else if (!apparatusIds.has(needed))
        fail(id, `requires "${needed}", which is a kit: a kit may require apparatuses only`)
    }
  }
  const requires = new Map(loaded.apparatuses.map(({ id, apparatus }) => [id, apparatus.requires ?? []]))
  for (const id of requires.keys()) {
    const circle = circleThrough(id, requires)
    if (circle !== undefined) fail(id, `is part of a circular chain of requires: ${circle.join(' → ')}`)
  }

  const all = [
    ...loaded.apparatuses.map(({ id, apparatus }) => ({ id, requires: apparatus.requires ?? [] })),
    ...loaded.kits.map(({ id, kit }) => ({ id, requires: kit.requires ?? [] })),
  ]
  for (let before = -1; before !== failures.size; ) {
    before = failures.size
    for (const plugin of all) {
      const failed = plugin.requires.find((needed) => failures.has(needed))
      if (failed !== undefined) fail(plugin.id, `depends on "${failed}", which failed`)
    }
  }
  return {
    kits: loaded.kits.filter(({ id }) => !failures.has(id)),
    apparatuses: loaded.apparatuses.filter(({ id }) => !failures.has(id)),
    failures: [...loaded.failures, ...[...failures].map(([id, reason]) => ({ id, reason }))],
  }
}

/** A way along the edges from `start` back to itself, both ends included; undefined when there is none. */
function circleThrough(start: string, edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const waiting = [start]
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    for (const next of edges.get(at) ?? []) {
      if (next === start) return [...wayTo(at, start, cameFrom), start]
      if (cameFrom.has(next) || !edges.has(next)) continue
      cameFrom.set(next, at)
      waiting.push(next)
    }
  }
  return undefined
}

function wayTo(end: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way = [end]
  for (let at = end; at !== start; ) {
    at = cameFrom.get(at)!
    way.unshift(at)
  }
  return way
}

import type { Worker } from '../ports/ledger.js'

/** So many workers, and types of each, are named: what a person reads at a glance. */
const NAMED_WORKERS = 3
const NAMED_TYPES = 5

/** Which workers there are and what they handle, for people who look for one that handles another type. */
export function aliveText(serving: readonly Pick<Worker, 'id' | 'host' | 'types'>[]): string {
  const named = serving.slice(0, NAMED_WORKERS).map(({ id, host, types }) => {
    // Every worker has the gates of dependencies.
    const own = types.filter((type) => !type.startsWith('@work/')).map((type) => `"${type}"`)
    return `${host} (worker ${id}, ${own.length === 0 ? 'no types' : `types ${shortened(own, NAMED_TYPES)}`})`
  })
  return `Alive there: ${shortened(named, NAMED_WORKERS, serving.length)}.`
}

/** What to do about items of a type that no live worker handles. `what` are the items: it or them. */
export function unhandledRemedy(type: string, what: 'it' | 'them'): string {
  return (
    `Start a worker that has "${type}" in its \`work\` list. Otherwise cancel ${what}, or start a worker with unknownTypeTimeout: ` +
    `it dead-letters what has waited for that long.`
  )
}

function shortened(words: readonly string[], most: number, all = words.length): string {
  const shown = words.slice(0, most)
  return all > shown.length ? `${shown.join(', ')} and ${all - shown.length} more` : shown.join(', ')
}

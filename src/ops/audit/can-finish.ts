/** What an unfinished item needs from others before it can run. */
export interface GateNeed {
  /** How many of them have to end. */
  readonly need: number
  readonly of: readonly string[]
}

/**
 * Which held items can never run, assuming that all other items can end. A least fixpoint: start with the items that wait for
 * none of the held ones, and free each item once enough of its members are free, until nothing changes.
 */
export function blockedForever(
  held: ReadonlyMap<string, GateNeed>,
  isHopeless: (id: string) => boolean,
): ReadonlySet<string> {
  const waitingFor = new Map<string, string[]>()
  const left = new Map<string, number>()
  const free: string[] = []
  for (const [id, { need, of }] of held) {
    let open = need
    for (const member of of) {
      if (held.has(member)) waitingFor.set(member, [...(waitingFor.get(member) ?? []), id])
      else if (!isHopeless(member)) open -= 1
    }
    left.set(id, open)
    if (open <= 0) free.push(id)
  }
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    for (const one of waitingFor.get(id) ?? []) {
      const open = left.get(one)! - 1
      left.set(one, open)
      if (open === 0) free.push(one)
    }
  }
  return new Set([...left].flatMap(([id, open]) => (open > 0 ? [id] : [])))
}

/** The shortest cycle from an item back to itself; undefined: it only waits for items that form a cycle. */
export function itemCycleFrom(
  id: string,
  held: ReadonlyMap<string, GateNeed>,
  stuck: ReadonlySet<string>,
): readonly string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [id]
  for (const at of queue) {
    for (const next of held.get(at)?.of ?? []) {
      if (next === id) {
        const way = [at]
        for (let back = cameFrom.get(at); back !== undefined; back = cameFrom.get(back)) way.unshift(back)
        return way
      }
      if (!stuck.has(next) || cameFrom.has(next)) continue
      cameFrom.set(next, at)
      queue.push(next)
    }
  }
  return undefined
}

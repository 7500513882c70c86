/** What an unfinished item needs of others before it can go on. */
export interface Need {
  /** So many of them have to end. */
  readonly need: number
  readonly of: readonly string[]
}

/**
 * Which of the held items can never go on, if every other one can: those that no order of ends would ever free. The least
 * fixpoint: begin with all that wait for nobody, and free whoever has enough of them, until nothing changes.
 */
export function stuckAmong(held: ReadonlyMap<string, Need>, isHopeless: (id: string) => boolean): ReadonlySet<string> {
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

/** The shortest way from an item back to itself over stuck ones; undefined: it only waits for some that go in a circle. */
export function circleFrom(
  id: string,
  held: ReadonlyMap<string, Need>,
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

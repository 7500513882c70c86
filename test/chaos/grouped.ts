/** The values under the key that each of them has, in their order. */
export function grouped<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    if (groups.has(key)) groups.get(key)!.push(one)
    else groups.set(key, [one])
  }
  return groups
}

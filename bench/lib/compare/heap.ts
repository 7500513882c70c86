/** Compiled code and caches that fill up take some of it in any process. */
const ALLOWED_BYTES = 2 * 2 ** 20
/** For each item that went through: far below what the smallest object takes. */
const ALLOWED_PER_ITEM = 20

/**
 * Whether a process keeps something of what went through it. `heaps` are the bytes that were alive after each round, when everything
 * had been closed; each round had that many items.
 */
export function isHeapGrowing(heaps: readonly number[], itemsPerRound: number): boolean {
  const [first, last] = [heaps[0], heaps.at(-1)]
  if (first === undefined || last === undefined || heaps.length < 2) return false
  return last - first > ALLOWED_BYTES + ALLOWED_PER_ITEM * itemsPerRound * (heaps.length - 1)
}

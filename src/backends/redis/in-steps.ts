/** Most ids in one read. */
const MAX_READ = 1_000

/** Asks about many ids, so many of them with one script. */
export async function inSteps(
  ids: readonly string[],
  ask: (some: readonly string[]) => Promise<unknown>,
): Promise<readonly unknown[]> {
  if (ids.length === 0) return []
  if (ids.length <= MAX_READ) return listOf(await ask(ids))
  const all: unknown[] = []
  for (let from = 0; from < ids.length; from += MAX_READ)
    all.push(...listOf(await ask(ids.slice(from, from + MAX_READ))))
  return all
}

const listOf = (reply: unknown): readonly unknown[] => (Array.isArray(reply) ? reply : [])

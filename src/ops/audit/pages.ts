import type { Inspect, ItemQuery, ItemSummary } from '../../ports/inspect.js'

const PAGE = 200

/** Every item of a query, with one page in memory at a time. */
export async function* pagesOf(
  inspect: Inspect,
  query: Omit<ItemQuery, 'cursor' | 'limit'>,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<readonly ItemSummary[], void> {
  let cursor: string | undefined
  let seen = 0
  do {
    const page = await inspect.list({ ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
    seen += page.items.length
    if (page.items.length > 0) yield page.items
    cursor = page.next
  } while (cursor !== undefined && seen < most)
}

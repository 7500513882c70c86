import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { FILTER_FLAGS, readFilters } from '../input/filters.js'
import { countFlag } from '../input/flags.js'
import { ITEM_COLUMNS, itemCells } from '../views/items.js'
import { mistypedName } from '../views/unheard-of.js'

const PAGE = 50
/** How many pages without a match are skipped before the command stops with a cursor. */
const MOST_PAGES = 100

export const list = defineCommand({
  name: 'list',
  summary: 'list items, newest first, by state, type, queue, tag, class, fingerprint, group or time',
  operands: '[filter …]',
  atMost: 20,
  about: [
    'Filters are flags or search words: --state dead and state:dead mean the same. A state with at most one more filter uses an index; further filters scan page by page. Payloads are never loaded.',
  ],
  flags: {
    ...FILTER_FLAGS,
    limit: countFlag('how many at most; default: 50', 'n'),
    cursor: { kind: 'text', value: '<cursor>', about: 'continue where the last page ended' },
  },
  examples: [
    ['millrace list state:dead type:charge', 'dead charges'],
    ['millrace list --state dead --before 2h', 'what died more than two hours ago'],
    ['millrace list state:dead after:02:00 before:03:00', 'what died in that hour (UTC)'],
    ['millrace list --state retrying --limit 1000 --json | jq -r .items[].id', 'ids for a program'],
  ],
  async run({ io, screen, flags, operands, isJson, ops: open }) {
    const { limit = PAGE, cursor } = flags
    const query = readFilters(flags, operands, io.clock.now())
    const ops = await open()
    let page = await ops.list({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) })
    // A page scans a limited number of items: matches may come on later pages.
    for (let more = 0; more < MOST_PAGES && page.items.length === 0 && page.next !== undefined; more += 1)
      page = await ops.list({ ...query, limit, cursor: page.next })
    if (isJson) {
      screen.json(page)
      return EXIT.done
    }
    const now = io.clock.now()
    if (page.items.length === 0) screen.line(page.next === undefined ? 'No item matches.' : 'None on this page.')
    else
      screen.table(
        ITEM_COLUMNS,
        page.items.map((item) => itemCells(item, now)),
      )
    const hint = page.items.length === 0 && page.next === undefined ? await mistypedName(ops, query) : undefined
    if (hint !== undefined) screen.note(hint)
    if (page.next !== undefined) screen.note(`There are more: --cursor ${page.next}`)
    return EXIT.done
  },
})

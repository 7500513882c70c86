import type { FailureClass } from '../../../core/failure/failure.js'
import { listedError } from '../../../core/text/error-text.js'
import type { At } from '../../../core/time/time.js'
import type { FailureGroup } from '../../../ports/inspect.js'
import type { ItemRecord } from '../items/item-record.js'
import type { ItemTable } from '../items/item-table.js'
import { DEAD, fingerprintIndex, RETRYING } from '../items/state-index.js'

interface Group {
  readonly fingerprint: string
  readonly class: FailureClass | undefined
  readonly type: string
  dead: number
  retrying: number
  firstAt: At
  lastAt: At
  last: ItemRecord
}

const PREFIX = fingerprintIndex('')

/** Dead and retrying items that failed alike, by the lists of their fingerprints; the largest groups first. */
export function failuresOf(table: ItemTable): FailureGroup[] {
  const found: Group[] = []
  for (const [name, { lists }] of table.index.indexes) {
    if (!name.startsWith(PREFIX)) continue
    const groups = new Map<string, Group>()
    for (const { record } of lists[DEAD]?.values() ?? []) add(groups, name.slice(PREFIX.length), record, true)
    for (const { record } of lists[RETRYING]?.values() ?? []) add(groups, name.slice(PREFIX.length), record, false)
    found.push(...groups.values())
  }
  return found
    .sort(
      (a, b) =>
        b.dead + b.retrying - (a.dead + a.retrying) || b.lastAt - a.lastAt || (a.fingerprint < b.fingerprint ? -1 : 1),
    )
    .map(({ class: of, last, ...group }) => ({
      ...group,
      ...(of === undefined ? {} : { class: of }),
      sample: { id: last.id, error: listedError(errorOf(last)) },
    }))
}

function add(groups: Map<string, Group>, fingerprint: string, record: ItemRecord, isDead: boolean): void {
  const of = isDead ? record.extras?.class : record.lastAttempt?.class
  const at = (isDead ? record.endAt : record.lastAttempt?.endedAt) ?? 0
  const { type } = record.envelope
  const key = `${of ?? ''} ${type}`
  const known = groups.get(key)
  const group = known ?? { fingerprint, class: of, type, dead: 0, retrying: 0, firstAt: at, lastAt: at, last: record }
  if (known === undefined) groups.set(key, group)
  if (isDead) group.dead += 1
  else group.retrying += 1
  if (at < group.firstAt) group.firstAt = at
  if (at < group.lastAt) return
  group.lastAt = at
  group.last = record
}

function errorOf(record: ItemRecord): string {
  return (record.status === 'dead' ? record.extras?.error : record.lastAttempt?.error) ?? ''
}

import type { At } from '../../core/time.js'
import { groupValueOf, readFinal, readValue, writeValue } from '../../ports/plain/group-value.js'
import type { Keys } from '../../ports/plain/keys.js'
import { GroupRecord } from './group-record.js'
import type { KeySpace } from './key-space.js'

/** The keys of a group, by their last part. */
export type GroupPart = 'open' | 'done' | 'result' | 'final'

/** What stands under a key of the group; undefined: nothing. */
export function groupText(group: GroupRecord, part: GroupPart): string | undefined {
  switch (part) {
    case 'open':
      return group.isCounted ? String(group.open) : undefined
    case 'done':
      return group.done
    case 'final':
      return group.final
    case 'result':
      return group.valueText ?? (group.value === undefined ? undefined : writeValue(group.value))
  }
}

/** Takes over what a plain system wrote under a key of the group. False: it makes no sense there. */
export function setGroupText(group: GroupRecord, part: GroupPart, text: string | undefined): boolean {
  switch (part) {
    case 'open': {
      const open = text === undefined ? 0 : Number(text)
      if (!Number.isFinite(open) || text === '') return false
      group.open = open
      group.isCounted = text !== undefined
      return true
    }
    case 'done':
      group.done = text
      return true
    case 'final':
      group.final = text
      if (text !== undefined) group.value = readFinal(text) ?? group.value
      group.version += 1
      return true
    case 'result':
      group.valueText = text
      // A locked value stands in the key of its lock: what is written beside it no longer counts.
      if (group.final === undefined || readFinal(group.final) === undefined) group.value = readValue(text).value
      group.version += 1
      return true
  }
}

/** A record for a group that so far stands in a plain store only; its texts are taken out. */
export function adoptGroup(id: string, names: Keys, keys: KeySpace, now: At): GroupRecord | undefined {
  const where = { open: names.open(id), done: names.done(id), result: names.value(id), final: names.final(id) }
  const open = keys.text(where.open, now)
  const done = keys.text(where.done, now)
  const result = keys.text(where.result, now)
  const final = keys.text(where.final, now)
  const found = [open, done, result, final].filter((text) => text !== undefined)
  if (found.length === 0) return undefined
  const group = new GroupRecord(id)
  if (open !== undefined && !setGroupText(group, 'open', open.value)) return undefined
  const { value, version } = groupValueOf(result?.value, final?.value)
  group.value = value
  group.valueText = result?.value
  group.final = final?.value
  group.version = Math.min(version, 1)
  group.done = done?.value
  group.keepUntil = Math.max(...found.map(({ expiresAt }) => expiresAt))
  for (const key of Object.values(where)) keys.dropText(key)
  return group
}

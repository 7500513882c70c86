import type { Effect, Settlement } from '../../../src/ports/settlement.js'
import { type SortedEffects, sortEffects, tracedGuard } from '../sorted-effects.js'

/**
 * A batch as the words that commit.lua reads. Flat words instead of one JSON text: the server, which everybody shares, parses
 * 100 settlements in about 75 µs instead of 180 (docs/decisions/0006-ledger-tracer.md).
 */
export function encodeBatch(batch: readonly Settlement[]): string[] {
  const words = ['0']
  let pushes = 0
  for (const settlement of batch) {
    const effects = sortEffects(settlement)
    pushes += effects.pushes.length
    const { id, token } = tracedGuard(settlement)
    words.push(token === undefined ? 'absent' : 'lease', id, token ?? '', '')
    const countAt = words.length - 1
    encodeEffects(words, effects)
    // A settlement whose guard does not hold is skipped by this count.
    words[countAt] = String(words.length - 1 - countAt)
  }
  words[0] = String(pushes)
  return words
}

/** The order is the script's: it applies the words as it reads them. */
function encodeEffects(words: string[], effects: SortedEffects): void {
  for (const { groupId, expect } of effects.contributions)
    if (expect !== undefined) words.push('expect', groupId, String(expect))
  for (const push of effects.pushes) encodePush(words, push, effects)
  for (const [groupId, by] of effects.moves) words.push('move', groupId, String(by), String(effects.keepMs))
  for (const { groupId, value, final } of effects.contributions)
    words.push('contribute', groupId, value, final ? '1' : '0')
  for (const { key, holds, need, of, members } of effects.gates) {
    const distinct = [...new Set(members)]
    words.push('openGate', key, holds, String(need), of, String(distinct.length), ...distinct)
  }
  const { ending } = effects
  if (ending?.do === 'finish') {
    const { id, ending: how, keepMs, result } = ending
    words.push('finish', id, how, String(keepMs), result === undefined ? '' : `=${result}`)
  } else if (ending?.do === 'park') {
    words.push('park', ending.id, ending.ending, String(ending.keepMs), ending.error, ending.class)
  } else if (ending?.do === 'retryAt') {
    words.push('retryAt', ending.id, String(ending.attempt), String(ending.delayMs))
  }
  for (const { key, member, ok } of effects.tells) words.push('tellGate', key, member, ok ? '1' : '0')
}

function encodePush(words: string[], push: Extract<Effect, { do: 'push' }>, effects: SortedEffects): void {
  const { item, queue, delayMs, hold } = push
  const { id, groupId } = item
  // A root that comes alone into a group of its own name: the group may live on its record.
  const isAlone =
    id === groupId &&
    effects.moves.get(groupId) === 1 &&
    !effects.contributions.some((contribution) => contribution.groupId === groupId)
  words.push(
    'push',
    id,
    queue,
    delayMs === Infinity ? '' : String(delayMs),
    hold?.by ?? '',
    hold?.key ?? '',
    (item.gates?.length ?? 0) > 0 ? '1' : '',
    isAlone ? '1' : '',
    groupId,
    String(item.priority),
    JSON.stringify(item),
  )
}

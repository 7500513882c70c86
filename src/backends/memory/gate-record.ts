/** A gate: two counts and who has yet to be heard of. Its item is held until the counts decide. */
export interface GateRecord {
  readonly key: string
  /** Id of the item that it holds. */
  readonly holds: string
  readonly of: 'done' | 'success'
  /** How many more must end (well). */
  need: number
  /** The members that have not ended. Their number is what is left. */
  readonly waiting: Set<string>
}

/** What a gate decided about the item that it held. */
export interface GateDecision {
  readonly key: string
  readonly met: boolean
}

export function newGate(
  key: string,
  holds: string,
  members: readonly string[],
  need: number,
  of: 'done' | 'success',
): GateRecord {
  return { key, holds, of, need, waiting: new Set(members) }
}

/** Counts a member's end, once: a repetition and a stranger change nothing. */
export function tell(gate: GateRecord, member: string, ok: boolean): boolean {
  if (!gate.waiting.delete(member)) return false
  if (ok || gate.of === 'done') gate.need -= 1
  return true
}

/** True: met. False: it can no longer be met. Undefined: wait on. */
export function verdict(gate: GateRecord): boolean | undefined {
  if (gate.need <= 0) return true
  return gate.need > gate.waiting.size ? false : undefined
}

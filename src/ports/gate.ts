/**
 * What a gate has decided that still needs `need` of its `remaining` members. True: its condition is met. False: it can no
 * longer be met. Undefined: the gate waits on.
 */
export function gateVerdict(need: number, remaining: number): boolean | undefined {
  if (need <= 0) return true
  return need > remaining ? false : undefined
}

/** Errors that handlers inside a transaction threw, as opposed to those of the store. */
const vetoes = new WeakSet<object>()

/** Notes that a handler inside a transaction threw this: the same transaction would fail again. */
export function markVeto(error: unknown): void {
  if (typeof error === 'object' && error !== null) vetoes.add(error)
}

/** Whether the transaction failed because a handler in it refused, and not because of the store or another transaction. */
export function isVeto(error: unknown): boolean {
  return typeof error === 'object' && error !== null && vetoes.has(error)
}

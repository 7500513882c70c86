/**
 * Calls an observer. What it throws, now or later, is ignored: neither the work nor the process may suffer
 * from a logger that fails.
 */
export function callObserver(observer: () => unknown): void {
  try {
    const answer = observer()
    if (answer instanceof Promise) answer.catch(() => undefined)
  } catch {
    // The same as above.
  }
}

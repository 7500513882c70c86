let holders = 0
let handle: NodeJS.Timeout | undefined

/**
 * Keeps the process alive until the returned function is called (once or more). Our timers are all unref'd, so that an
 * idle library never holds a program open; a caller that has promised an answer holds it by this instead.
 */
export function keepAlive(): () => void {
  holders += 1
  handle ??= setInterval(() => undefined, 1 << 30)
  let isHolding = true
  return () => {
    if (!isHolding) return
    isHolding = false
    holders -= 1
    if (holders === 0) {
      clearInterval(handle)
      handle = undefined
    }
  }
}

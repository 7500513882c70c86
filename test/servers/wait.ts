/** How long a server may take for one answer; on a machine under load even the first connection takes seconds. */
export const ANSWER_MS = 30_000

/** Real time: these helpers wait for other processes, which no fake clock moves. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Asks again and again, with short pauses, until `ask` answers true. Rejects with `what` after `ms`. */
export async function until(what: () => string, ms: number, ask: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + ms
  for (let wait = 2; ; wait = Math.min(50, wait * 2)) {
    if (await ask()) return
    if (performance.now() > end) throw new Error(`${what()} (waited ${ms} ms)`)
    await pause(wait)
  }
}

/** `promise`, or a rejection after `ms`. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

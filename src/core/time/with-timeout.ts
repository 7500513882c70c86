import type { Clock } from './clock.js'
import type { Ms } from './time.js'

/** Waits for the user's code, but not forever: after `ms` it answers what `late` returns, or throws what that throws. */
export async function withTimeout<T, L>(clock: Clock, ms: Ms, asked: Promise<T>, late: () => L): Promise<T | L> {
  let cancel: () => void = () => undefined
  const timeUp = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve)
  })
  try {
    return await Promise.race([asked, timeUp.then(late)])
  } finally {
    cancel()
  }
}

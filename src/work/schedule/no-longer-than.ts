import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'

/** Waits for what the user's code does, but not for ever: after `ms` it answers what `late` returns, or throws what that throws. */
export async function noLongerThan<T, L>(clock: Clock, ms: Ms, asked: Promise<T>, late: () => L): Promise<T | L> {
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

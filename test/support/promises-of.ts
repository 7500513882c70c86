import { createHook } from 'node:async_hooks'

/** How many promises are made until `run` has ended. */
export async function promisesOf(run: () => Promise<unknown>): Promise<number> {
  let count = 0
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'PROMISE') count += 1
    },
  }).enable()
  try {
    await run()
    return count
  } finally {
    hook.disable()
  }
}

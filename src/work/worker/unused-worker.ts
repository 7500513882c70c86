import { onBeforeExit, onExit, warnAtExit } from '../../core/process/on-exit.js'
import { processWide } from '../../core/process/process-wide.js'

/** Of this process: whether any worker has claimed an item, and whether a warning said that none did. */
const ofProcess = processWide('unused-worker', () => ({ hasTaken: false, hasWarned: false }))

/**
 * Warns if the process ends by itself while a started worker was never stopped, and no worker of the process has claimed an item:
 * it looks like success, and is nearly always a worker that nothing keeps alive. A call of `process.exit` is intended, and gets no
 * warning.
 *
 * @returns what ends the watch
 */
export function watchUnused(types: readonly string[]): () => void {
  let isDrained = false
  const ends = [
    onBeforeExit(() => {
      isDrained = true
    }),
    // Not earlier: a listener of the program may stop the worker before the exit.
    onExit(() => {
      const known = ofProcess()
      if (!isDrained || known.hasTaken || known.hasWarned) return
      known.hasWarned = true
      warnAtExit(textOf(types), 'MILLRACE_WORKER_EXITED')
    }),
  ]
  return () => {
    for (const end of ends) end()
  }
}

/** A worker has claimed an item: this process is not unused. */
export function workWasTaken(): void {
  ofProcess().hasTaken = true
}

function textOf(types: readonly string[]): string {
  const named = types.slice(0, 3).map((type) => JSON.stringify(type))
  const more = types.length > named.length ? ', …' : ''
  return (
    `The process ended because nothing kept it alive, while a worker was started for ${named.join(', ')}${more}; it ran nothing. ` +
    'An idle worker does not keep its process alive: give createWork({ keepAlive: true }) to a worker, { autoStart: false } to a program ' +
    'that only enqueues, or { keepAlive: false } if this is meant.'
  )
}

import type { Ms } from '../../core/time/time.js'
import type { Io } from '../io.js'

// The alternate screen, which restores the previous contents afterwards, with a hidden cursor.
export const ENTER = '\u001b[?1049h\u001b[?25l'
export const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const END_OF_LINE = '\u001b[K'
const END_OF_SCREEN = '\u001b[J'

const ESCAPE = '\u001b'
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

export interface LiveOptions<T> {
  readonly io: Io
  readonly everyMs: Ms
  /** The number of refreshes. Infinity: until it is stopped. */
  readonly times: number
  read(): Promise<T>
  /** The whole screen, for the current size of the terminal. `trouble` is the error of the last refresh. */
  render(seen: T, trouble: unknown): readonly string[]
  /** Prints one refresh, without a terminal. */
  print(seen: T): void
  /** Prints a failed refresh, without a terminal. */
  failed(trouble: unknown): void
}

/**
 * Refreshes until the person stops it (q, Escape or Ctrl-C), the reader of the output is gone, or `times` is reached. On a
 * terminal it draws in place; otherwise it prints each refresh. The first one must succeed; a later failure is shown, and the
 * next refresh may succeed again.
 */
export async function runLive<T>(options: LiveOptions<T>): Promise<void> {
  const { io, everyMs, times } = options
  let seen = await options.read()
  let trouble: unknown
  const over = new AbortController()
  const end = () => over.abort()
  const canDraw = io.out.isTerminal && io.keys !== undefined
  const draw = () => {
    if (canDraw) io.out.write(frame(options.render(seen, trouble), io.out.rows))
  }
  const undo: (() => void)[] = [io.onInterrupt(end)]
  io.closed.addEventListener('abort', end)
  if (io.closed.aborted) end()
  if (canDraw) {
    io.out.write(ENTER)
    undo.push(() => io.out.write(LEAVE))
    undo.push(
      io.keys!.listen((key) => {
        if (key === 'q' || key === 'Q' || key === ESCAPE || key === CTRL_C || key === CTRL_D) end()
      }),
    )
    undo.push(io.onResize(draw))
  }
  try {
    for (let looks = 1; ; looks += 1) {
      if (canDraw) draw()
      else if (trouble === undefined) options.print(seen)
      else options.failed(trouble)
      if (looks >= times) break
      await io.clock.sleep(everyMs, over.signal).catch(() => undefined)
      if (over.signal.aborted) break
      try {
        seen = await options.read()
        trouble = undefined
      } catch (error) {
        trouble = error
      }
      if (over.signal.aborted) break
    }
  } finally {
    io.closed.removeEventListener('abort', end)
    for (const step of undo.reverse()) step()
  }
  // The last state stays on the normal screen.
  if (canDraw) options.print(seen)
}

/** One frame. Clears the rest of every line and of the screen, which avoids flicker. */
function frame(lines: readonly string[], rows: number): string {
  const shown = lines.slice(0, Math.max(1, rows - 1))
  return `${HOME}${shown.map((line) => `${line}${END_OF_LINE}`).join('\n')}${END_OF_LINE}${END_OF_SCREEN}`
}

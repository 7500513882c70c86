import type { Ms } from '../../core/time.js'
import type { Io } from '../io.js'

// The other screen of the terminal, so that what was there before is there again afterwards; the cursor hidden.
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
  /** How often at most. Infinity: until somebody ends it. */
  readonly times: number
  look(): Promise<T>
  /** The whole screen, for the size that the terminal has now. `trouble` is what went wrong with the last look. */
  render(seen: T, trouble: unknown): readonly string[]
  /** Without a terminal to draw on: what is printed for each look. */
  print(seen: T): void
  /** Without a terminal: a look that failed after one that did not. */
  failed(trouble: unknown): void
}

/**
 * Looks again and again until the person ends it (q, Escape or Ctrl-C), nobody reads any more, or it has looked often enough.
 * On a terminal it draws in place; otherwise every look is printed after the last one. The first look must succeed; a later
 * one that fails is shown, and the next may succeed again.
 */
export async function runLive<T>(options: LiveOptions<T>): Promise<void> {
  const { io, everyMs, times } = options
  let seen = await options.look()
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
        seen = await options.look()
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
  // What was seen last stays, on the screen of before.
  if (canDraw) options.print(seen)
}

/** One picture: every line is cleared behind its end, and the screen below the last one, so that nothing flickers. */
function frame(lines: readonly string[], rows: number): string {
  const shown = lines.slice(0, Math.max(1, rows - 1))
  return `${HOME}${shown.map((line) => `${line}${END_OF_LINE}`).join('\n')}${END_OF_LINE}${END_OF_SCREEN}`
}

import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { durationText } from '../../ops/duration-text.js'
import type { Sink } from '../io.js'
import { countText, renderBar } from './bar.js'
import type { Paint } from './paint.js'
import { cut, widthOf } from './width.js'

/** Faster than the eye. */
const DRAW_EVERY_MS: Ms = 80
/** Without a terminal: an occasional line for a log. */
const LINE_EVERY_MS: Ms = 5_000
/** After this long without progress, the bar says what it waits for. */
const QUIET_MS: Ms = 1_000
/** The least useful width of a bar. */
const LEAST_BAR = 24

/** Shows the progress of a long action: a bar on a terminal, otherwise an occasional line. */
export class Progress {
  readonly #err: Sink
  readonly #clock: Clock
  readonly #label: string
  readonly #paint: Paint
  #shownMs: Ms | undefined
  #isDrawn = false
  #cancelTick: (() => void) | undefined

  constructor(err: Sink, clock: Clock, label: string, paint: Paint) {
    this.#err = err
    this.#clock = clock
    this.#label = label
    this.#paint = paint
  }

  /** `waitsFor` names what it waits for, as the end of a sentence. */
  show(done: number, total: number, waitsFor = 'the next page'): void {
    const bar = (columns: number) => renderBar(this.#label, done, total, columns, this.#paint)
    const line = `${countText(done)} of ${countText(total)}`
    this.#say(bar, line, done >= total)
    this.#tickWhileQuiet(waitsFor, bar, line)
  }

  /** For an unknown total. */
  count(done: number): void {
    const text = `${countText(done)} so far`
    const bar = (columns: number) => cut(`${this.#label}  ${text}`, columns)
    this.#say(bar, text, false)
    this.#tickWhileQuiet('the next page', bar, text)
  }

  /** Shows the waiting time during a pause, which would otherwise look like a hang. */
  #tickWhileQuiet(waitsFor: string, bar: (columns: number) => string, line: string): void {
    this.#cancelTick?.()
    const begunMs = this.#clock.monotonic()
    const everyMs = this.#err.isTerminal ? QUIET_MS : 2 * LINE_EVERY_MS
    const next = () => {
      this.#cancelTick = this.#clock.after(everyMs, () => {
        const waits = `waiting for ${waitsFor}, ${durationText(this.#clock.monotonic() - begunMs)}`
        this.#say((columns) => withTail(bar, waits, columns), `${line}; ${waits}`, false)
        next()
      })
    }
    next()
  }

  #say(bar: (columns: number) => string, line: string, isLast: boolean): void {
    const now = this.#clock.monotonic()
    const { isTerminal, columns } = this.#err
    // Without a terminal, short actions print nothing.
    this.#shownMs ??= isTerminal ? Number.NEGATIVE_INFINITY : now
    if (now - this.#shownMs < (isTerminal ? DRAW_EVERY_MS : LINE_EVERY_MS) && !(isTerminal && isLast)) return
    this.#shownMs = now
    if (isTerminal) {
      this.#err.write(`\r${bar(columns - 1)}\u001b[K`)
      this.#isDrawn = true
    } else this.#err.write(`${this.#label}: ${line}\n`)
  }

  /** Removes the bar; the result follows. */
  end(): void {
    this.#cancelTick?.()
    this.#cancelTick = undefined
    if (this.#isDrawn) this.#err.write('\r\u001b[K')
    this.#isDrawn = false
  }
}

/** Shortens the bar down to its least width to fit the tail. */
function withTail(bar: (columns: number) => string, tail: string, columns: number): string {
  const room = columns - widthOf(tail) - 2
  return room < LEAST_BAR ? cut(tail, columns) : `${bar(room)}  ${tail}`
}

import type { ErrorDetail } from '../../core/failure/error-detail.js'
import { stackFrame } from '../../core/failure/stack-frame.js'
import { counted } from '../terminal/bar.js'
import { clean, cleanLines } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'
import { cut } from '../terminal/width.js'
import { wrapIndented } from '../terminal/wrap.js'

interface View {
  readonly columns: number
  readonly paint: Paint
  /** Shows every frame of every stack. */
  readonly isFull: boolean
}

const INDENT = '  '
const FRAME_INDENT = '      '
/** What goes on on the next line stands deeper than what comes next. */
const HANG = '  '
/** How many frames of an error are shown if it has none, or very many, of the user's own code. */
const LEAST_FRAMES = 2
const MOST_FRAMES = 8

/**
 * An error with all its causes. Messages are whole; of each stack, without `--full`, only the frames of the user's own code are shown,
 * because those of Node and of packages, ours among them, would push the causes off the screen. A place is never cut: it is what people
 * copy, and its line number is at its end.
 */
export function renderFailure(detail: ErrorDetail, { columns, paint, isFull }: View): string[] {
  const lines: string[] = []
  let hidden = 0
  for (let one: ErrorDetail | undefined = detail; one !== undefined; one = one.cause) {
    const code = one.code === undefined ? '' : ` (${one.code})`
    const head = `${INDENT}${one === detail ? '' : 'Caused by: '}${one.name}: ${one.message}${code}`
    lines.push(...wrapIndented(cleanLines(head).replaceAll('\n', `\n${INDENT}`), columns))
    const all = (one.stack ?? '').split('\n').filter((line) => line.trim() !== '')
    const shown = isFull ? all : framesToRead(all)
    hidden += all.length - shown.length
    for (const line of shown) lines.push(...wrapIndented(`${FRAME_INDENT}${clean(line.trim())}`, columns, HANG))
  }
  if (hidden > 0)
    lines.push(
      paint(
        'dim',
        cut(`${INDENT}… ${counted(hidden, 'stack line')} of Node and of packages; --full shows them`, columns),
      ),
    )
  return lines
}

/** The frames of the user's own code. Without any, the innermost: an error that only a package saw came from there. */
function framesToRead(lines: readonly string[]): readonly string[] {
  const own = lines.filter((line) => stackFrame(line)?.isOwn === true)
  return own.length === 0 ? lines.slice(0, LEAST_FRAMES) : own.slice(0, MOST_FRAMES)
}

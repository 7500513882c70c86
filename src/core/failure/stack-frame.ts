/** One line of a stack, as V8 writes it. */
export interface StackFrame {
  /** The function, if it has a name. */
  readonly caller: string
  /** The file, with line and column. */
  readonly place: string
  /** Whether it is neither Node's nor of a package in `node_modules`. */
  readonly isOwn: boolean
}

/** Longer lines are no frames. */
const MOST_CHARACTERS = 2_000

/** What a line of a stack says. Undefined for a line that is no frame. */
export function stackFrame(line: string): StackFrame | undefined {
  const text = line.trim()
  if (!text.startsWith('at ') || text.length > MOST_CHARACTERS) return undefined
  const hasCaller = text.endsWith(')')
  const place = hasCaller ? text.slice(text.lastIndexOf('(') + 1, -1) : text.slice(text.lastIndexOf(' ') + 1)
  const caller = hasCaller ? text.slice(3, Math.max(3, text.lastIndexOf('(') - 1)) : ''
  const isOwn = /[\\/]/.test(place) && !place.startsWith('node:') && !/[\\/]node_modules[\\/]/.test(place)
  return { caller, place, isOwn }
}

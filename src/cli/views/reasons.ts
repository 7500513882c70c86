import type { Reason } from '../../ops/items/explain.js'
import { wrap } from '../screen.js'
import { clean } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'

/** A reason, its remedy, and the commands for it. */
export interface ShownReason extends Pick<Reason, 'text' | 'remedy'> {
  readonly commands?: readonly string[]
}

/** Reasons in order, each with its remedy. Commands are never wrapped or cut, so that they can be copied. */
export function renderReasons(reasons: readonly ShownReason[], columns: number, paint: Paint): string[] {
  return reasons.flatMap(({ text, remedy, commands = [] }, i) => {
    const mark = reasons.length === 1 ? '' : `${i + 1}. `
    const indent = ' '.repeat(mark.length)
    const [first = '', ...rest] = wrap(clean(text), columns, indent)
    return [
      `${mark}${first.slice(mark.length)}`,
      ...rest,
      ...wrap(`→ ${clean(remedy)}`, columns, `${indent}`).map((line) => paint('good', line)),
      ...commands.map((command) => `${indent}  ${paint('name', clean(command))}`),
    ]
  })
}

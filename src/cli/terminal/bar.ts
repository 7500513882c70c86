import type { Paint } from './paint.js'
import { cut, widthOf } from './width.js'

const CELLS = 30
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** One frame of a progress bar: `redrive  ████▌      45%  5,600 of 12,345`. */
export function renderBar(label: string, done: number, total: number, columns: number, paint: Paint): string {
  const share = total <= 0 ? 1 : Math.min(1, Math.max(0, done / total))
  const numbers = `${String(Math.floor(share * 100)).padStart(3)}%  ${countText(done)} of ${countText(total)}`
  const room = columns - widthOf(label) - widthOf(numbers) - 4
  if (room < 5) return cut(`${label} ${numbers}`, columns)
  const cells = Math.min(CELLS, room)
  const eighths = Math.floor(share * cells * 8)
  const filled = '█'.repeat(Math.floor(eighths / 8)) + PARTS[eighths % 8]
  const bar = `${paint('good', filled)}${' '.repeat(Math.max(0, cells - widthOf(filled)))}`
  return `${label}  ${bar}  ${numbers}`
}

/** A number with separators: 12,345. */
export function countText(count: number): string {
  return count.toLocaleString('en-US', { maximumFractionDigits: 1 })
}

/** `1 item`, `12,345 items`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`
}

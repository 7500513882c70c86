import { styleText } from 'node:util'

/** What a stretch of text is, not which colour it has. */
export type Tone = 'plain' | 'title' | 'dim' | 'good' | 'warn' | 'bad' | 'name' | 'busy'

/** Gives text a tone; a painter without colours returns it as it is. */
export type Paint = (tone: Tone, text: string) => string

export const plain: Paint = (_tone, text) => text

// The sixteen colours that every terminal lets its owner choose, so that they are readable on any background.
const FORMATS = {
  title: 'bold',
  dim: 'dim',
  good: 'green',
  warn: 'yellow',
  bad: 'red',
  name: 'cyan',
  busy: 'blue',
} as const

export const coloured: Paint = (tone, text) =>
  // Whether the stream may have colours was decided by whoever chose this painter.
  tone === 'plain' || text === '' ? text : styleText(FORMATS[tone], text, { validateStream: false })

/** Colours only on a terminal that has them, and only if nobody has said no (https://no-color.org). */
export function painterFor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  const isRefused = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return isTerminal && !isRefused ? coloured : plain
}

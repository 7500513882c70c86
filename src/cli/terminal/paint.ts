import { styleText } from 'node:util'

/** The meaning of a text, not its colour. */
export type Tone = 'plain' | 'title' | 'dim' | 'good' | 'warn' | 'bad' | 'name' | 'busy'

/** Colours a text by its tone; without colours, returns it unchanged. */
export type Paint = (tone: Tone, text: string) => string

export const plain: Paint = (_tone, text) => text

// The sixteen theme colours, which are readable on any background.
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
  // `painterFor` has decided that the stream may have colours.
  tone === 'plain' || text === '' ? text : styleText(FORMATS[tone], text, { validateStream: false })

/** Colours only on a terminal that has them, and not with NO_COLOR (https://no-color.org). */
export function painterFor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Paint {
  const isRefused = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  return isTerminal && !isRefused ? coloured : plain
}

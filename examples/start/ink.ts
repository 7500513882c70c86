import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Colours are for people at a terminal, and not for those who said that they want none (`NO_COLOR`). */
const isColourful = process.stdout.isTTY === true && (process.env['NO_COLOR'] ?? '') === ''

export function ink(style: Style, text: string): string {
  return isColourful ? styleText(style, text) : text
}

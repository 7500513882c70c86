import { segmentsOf, widthOf } from './width.js'

/**
 * Text in lines of at most that width. Its own lines stay lines. It breaks at spaces, and between characters of scripts that are written without them. A word that
 * is longer than a line stays whole, because it may be an id: the terminal wraps it, and it can still be copied.
 */
export function wrapText(text: string, columns: number): string[] {
  if (text === '') return []
  return text.split('\n').flatMap((line) => wrapLine(line, columns))
}

/** Text is not wrapped to less than this, however deep its indentation. */
const LEAST_ROOM = 20

/** The same for text whose lines are indented: what goes on below a line is indented as that line, and by `hang` more. */
export function wrapIndented(text: string, columns: number, hang = ''): string[] {
  return text.split('\n').flatMap((line) => {
    const indent = /^ */.exec(line)?.[0] ?? ''
    if (widthOf(line) <= columns) return [line]
    const pieces = wrapLine(line.slice(indent.length), Math.max(LEAST_ROOM, columns - indent.length - hang.length))
    return pieces.map((piece, i) => `${indent}${i === 0 ? '' : hang}${piece}`)
  })
}

function wrapLine(text: string, columns: number): string[] {
  if (widthOf(text) <= columns) return [text]
  const lines: string[] = []
  let line = ''
  let width = 0
  for (const { part, isAfterSpace } of partsOf(text)) {
    const gap = isAfterSpace && line !== '' ? ' ' : ''
    const more = widthOf(part)
    if (line !== '' && width + gap.length + more > columns) {
      lines.push(line)
      line = part
      width = more
    } else {
      line += gap + part
      width += gap.length + more
    }
  }
  return [...lines, line]
}

interface Part {
  readonly part: string
  readonly isAfterSpace: boolean
}

/** The pieces of a text between which a line may end. */
function* partsOf(text: string): IterableIterator<Part> {
  for (const word of text.split(/\s+/).filter((one) => one !== '')) {
    let isAfterSpace = true
    let narrow = ''
    for (const segment of segmentsOf(word)) {
      if (widthOf(segment) < 2) {
        narrow += segment
        continue
      }
      if (narrow !== '') {
        yield { part: narrow, isAfterSpace }
        isAfterSpace = false
        narrow = ''
      }
      yield { part: segment, isAfterSpace }
      isAfterSpace = false
    }
    if (narrow !== '') yield { part: narrow, isAfterSpace }
  }
}

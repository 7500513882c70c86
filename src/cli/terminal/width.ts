const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

// What terminals draw two columns wide: East Asian wide and full-width forms, and emoji.
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}|^\p{Emoji}\ufe0f|^\p{Regional_Indicator}/u
const NOTHING = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u
const PLAIN = /^[\x20-\x7e]*$/

/** What a reader sees as one character each. */
export function segmentsOf(text: string): Iterable<string> {
  return PLAIN.test(text) ? text : Array.from(segmenter.segment(text), ({ segment }) => segment)
}

/** The width of a cleaned text on a terminal. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment)
  return width
}

/** Cuts text to a width, ending in `…`. Never splits a visible character. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (PLAIN.test(text)) return text.length <= columns ? text : `${text.slice(0, columns - 1)}…`
  if (widthOf(text) <= columns) return text
  let width = 0
  let kept = ''
  for (const { segment } of segmenter.segment(text)) {
    const more = graphemeWidth(segment)
    if (width + more > columns - 1) break
    width += more
    kept += segment
  }
  return `${kept}…`
}

/** Pads text with spaces to a width. */
export function pad(text: string, columns: number, side: 'left' | 'right' = 'left'): string {
  const spaces = ' '.repeat(Math.max(0, columns - widthOf(text)))
  return side === 'left' ? text + spaces : spaces + text
}

function graphemeWidth(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2
  return NOTHING.test(grapheme) ? 0 : 1
}

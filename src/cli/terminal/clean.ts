/**
 * Text of strangers (payloads, ids, errors) made harmless for a terminal: control characters would move the cursor, change
 * colours, set the title or hide what was written; characters that turn the direction of writing would show a text as
 * another. They are shown as pictures or as their code, never passed on.
 */

// C0, DEL and C1.
const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f'
// Direction marks, embeddings, overrides and isolates; line and paragraph separators; zero-width and invisible ones.
const TRICKS = '\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb'
const LONE = '[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]'
// Tag characters: invisible, and able to carry a whole hidden text.
const TAGS = '\\udb40[\\udc00-\\udc7f]'
const HARMFUL = new RegExp(`[${CONTROLS}${TRICKS}]|${TAGS}|${LONE}`, 'g')
const HARMFUL_BUT_LINES = new RegExp(
  `[${CONTROLS.replace('\\u0000-\\u001f', '\\u0000-\\u0009\\u000b-\\u001f')}${TRICKS}]|${TAGS}|${LONE}`,
  'g',
)

/** On one line: line breaks are shown too. */
export function clean(text: string): string {
  return text.replace(HARMFUL, picture)
}

/** Line breaks stay; tabs become spaces, so that columns can be counted. */
export function cleanLines(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\t', '  ').replace(HARMFUL_BUT_LINES, picture)
}

/** JSON with everything escaped that a terminal might act on. It is the same document to a program. */
export function cleanJson(json: string): string {
  return json.replace(HARMFUL_BUT_LINES, (found) =>
    [...Array(found.length).keys()].map((i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}

function picture(found: string): string {
  const code = found.codePointAt(0)!
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd'
  return `\\u{${code.toString(16)}}`
}

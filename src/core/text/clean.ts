/**
 * Makes untrusted text (payloads, ids, errors) safe for a terminal. Control characters could move the cursor, change colours, set
 * the title or hide output; direction marks could make one text look like another. They are shown as symbols or as their code.
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

/** For one line: line breaks are replaced, too. */
export function clean(text: string): string {
  return text.replace(HARMFUL, picture)
}

/** Keeps line breaks; tabs become spaces, so that columns can be counted. */
export function cleanLines(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\t', '  ').replace(HARMFUL_BUT_LINES, picture)
}

/** JSON with everything escaped that a terminal might interpret. Programs read the same document. */
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

import { escapeHtml } from './escape.mjs'

const KEYWORDS =
  'abstract|as|async|await|break|case|catch|class|const|continue|declare|default|do|else|export|extends|false|finally|for|' +
  'from|function|if|implements|import|in|instanceof|interface|keyof|let|new|null|of|readonly|return|satisfies|static|super|' +
  'switch|this|throw|true|try|type|typeof|undefined|using|void|while|yield'

const TYPESCRIPT = new RegExp(
  [
    '(?<comment>//[^\\n]*|/\\*[\\s\\S]*?\\*/)',
    // A template that spans no other one is enough for pages; what is inside it stays plain.
    '(?<string>\'(?:\\\\.|[^\'\\\\\\n])*\'|"(?:\\\\.|[^"\\\\\\n])*"|`(?:\\\\.|[^`\\\\])*`)',
    `(?<keyword>\\b(?:${KEYWORDS})\\b)`,
    '(?<number>\\b\\d[\\d_.]*n?\\b)',
  ].join('|'),
  'g',
)

const SHELL = /(?<comment>(?:^|\s)#[^\n]*)|(?<string>'[^'\n]*'|"[^"\n]*")/gm

/**
 * Code as HTML, with its comments, strings, keywords and numbers marked. Marks are all it adds: the text stays the text.
 * @param {string} code
 * @param {string} language
 */
export function highlight(code, language) {
  const rules = { ts: TYPESCRIPT, typescript: TYPESCRIPT, js: TYPESCRIPT, sql: undefined, sh: SHELL }[language]
  if (rules === undefined) return escapeHtml(code)
  let html = ''
  let at = 0
  for (const match of code.matchAll(rules)) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? ['']
    html += escapeHtml(code.slice(at, match.index))
    html += `<span class="${kind}">${escapeHtml(match[0])}</span>`
    at = match.index + match[0].length
  }
  return html + escapeHtml(code.slice(at))
}

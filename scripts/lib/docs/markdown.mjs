import { Marked } from 'marked'
import { escapeHtml } from './escape.mjs'
import { highlight } from './highlight.mjs'
import { anchors } from './slug.mjs'

/** @typedef {{ depth: number, text: string, id: string }} Heading */

/**
 * @typedef {object} Rendered
 * @property {string} html
 * @property {Heading[]} headings
 */

/**
 * A page as HTML. HTML inside of it is shown, never passed on: our pages have none, and a generated one could have some by
 * accident.
 * @param {string} text
 * @param {(href: string) => string} link where a link of this page leads in the site
 * @returns {Rendered}
 */
export function renderMarkdown(text, link) {
  const idOf = anchors()
  /** @type {Heading[]} */
  const headings = []
  const marked = new Marked({ gfm: true })
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const text = this.parser.parseInline(tokens, this.parser.textRenderer)
        const plain = text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] ?? entity)
        const id = idOf(plain)
        headings.push({ depth, text: plain, id })
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)} <a class="anchor" href="#${id}" aria-label="Link to this part">#</a></h${depth}>\n`
      },
      code({ text, lang = '' }) {
        const [language = ''] = lang.split(/\s/)
        return `<pre><code>${highlight(text, language)}</code></pre>\n`
      },
      link({ href, tokens }) {
        return `<a href="${escapeHtml(link(href))}">${this.parser.parseInline(tokens)}</a>`
      },
      image({ href, text }) {
        return `<img src="${escapeHtml(link(href))}" alt="${escapeHtml(text)}">`
      },
      html({ text }) {
        return text.startsWith('<!--') ? '' : escapeHtml(text)
      },
      table(token) {
        const row = (/** @type {import('marked').Tokens.TableCell[]} */ cells, /** @type {'td' | 'th'} */ tag) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n')
        // A wide table scrolls by itself, so that a phone does not scroll the page sideways.
        return `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const html = /** @type {string} */ (marked.parse(text, { async: false }))
  return { html, headings }
}

/** @type {Readonly<Record<string, string>>} */
const ENTITIES = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

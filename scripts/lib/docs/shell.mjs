import { escapeHtml } from './escape.mjs'

/**
 * @typedef {object} Shown
 * @property {string} path in the site: `guide/start.html`
 * @property {string} title
 * @property {string} html
 */

/** @typedef {{ title: string, pages: readonly { title: string, path: string }[] }} NavSection */

/**
 * A whole page: its text, the table of contents behind it, and the pages before and after it. Everything is a link, so that
 * it works without a script; the one script adds the search.
 * @param {Shown} page
 * @param {readonly NavSection[]} sections
 */
export function shell({ path, title, html }, sections) {
  const base = '../'.repeat(path.split('/').length - 1)
  const order = sections.flatMap(({ pages }) => pages)
  const at = order.findIndex((one) => one.path === path)
  const [previous, next] = at < 0 ? [] : [order[at - 1], order[at + 1]]
  const turn = (/** @type {{ title: string, path: string } | undefined} */ to, /** @type {string} */ text) =>
    to === undefined ? '<span></span>' : `<a href="${base}${to.path}">${text}: ${escapeHtml(to.title)}</a>`
  return `<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title === 'Millrace' ? title : `${title} · Millrace`)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}style.css">
<script src="${base}search-index.js" defer></script>
<script src="${base}search.js" defer></script>
</head>
<body>
<a class="skip" href="#text">To the text</a>
<header>
<a href="${base}index.html">Millrace</a>
<a class="to-contents" href="#contents">Contents</a>
<form class="search" role="search" hidden>
<input type="search" placeholder="Search titles and headings ( / )" aria-label="Search titles and headings" autocomplete="off">
<ol></ol>
</form>
</header>
<div class="columns">
<main id="text">
${html}
<footer>${turn(previous, 'Before')} ${turn(next, 'Next')}</footer>
</main>
<nav id="contents" aria-label="Contents">
${sections.map((section) => sectionHtml(section, path, base)).join('\n')}
</nav>
</div>
</body>
</html>
`
}

/**
 * @param {NavSection} section
 * @param {string} current
 * @param {string} base
 */
function sectionHtml({ title, pages }, current, base) {
  const isOpen = pages.some(({ path }) => path === current) || current === 'index.html'
  const items = pages.map(({ title: name, path }) => {
    const here = path === current ? ' aria-current="page"' : ''
    return `<li><a href="${base}${path}"${here}>${escapeHtml(name)}</a></li>`
  })
  return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(title)}</summary><ul>${items.join('')}</ul></details>`
}

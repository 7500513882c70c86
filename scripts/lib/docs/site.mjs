import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, extname, join, posix } from 'node:path'
import { root } from '../root.mjs'
import { readContents } from './contents.mjs'
import { escapeHtml } from './escape.mjs'
import { highlight } from './highlight.mjs'
import { llmsText } from './llms.mjs'
import { renderMarkdown } from './markdown.mjs'
import { firstSentence, referencePage, references } from './reference.mjs'
import { shell } from './shell.mjs'

/** Pages at the root of the repository that belong to the documentation. */
const PROJECT = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md']

/** Files that are shown as they are; everything else that is linked to gets a page. */
const ASSETS = new Set(['.svg', '.png'])

/**
 * The whole site, as what stands in which file: every page of the documentation, the reference of every door, and a page for
 * each file of the repository that one of them links to, so that no link leaves the site.
 * @returns {Map<string, string>}
 */
export function buildSite() {
  const contents = readContents()
  const doors = references()
  /** @type {Map<string, string>} Markdown that is not in a file, by where it would be. */
  const generated = new Map([['docs/reference/index.md', doorsPage(doors)]])
  for (const door of doors) generated.set(`docs/${door.path}`, referencePage(door))
  const sections = contents.sections.map(({ title, pages }) => ({
    title,
    pages: [
      ...pages.map((page) => ({ title: page.title, path: sitePath(`docs/${page.path}`) })),
      ...(title === 'Reference'
        ? [...generated].map(([path, text]) => ({ title: titleIn(text), path: sitePath(path) }))
        : []),
    ],
  }))
  sections.push({
    title: 'Project',
    pages: PROJECT.map((file) => ({ title: titleIn(read(file)), path: sitePath(file) })),
  })

  /** @type {Map<string, string>} */
  const files = new Map()
  /** @type {[string, string, string][]} */
  const index = []
  const waiting = ['docs/README.md', ...PROJECT, ...generated.keys()]
  for (const { pages } of contents.sections) waiting.push(...pages.map(({ path }) => `docs/${path}`))
  const queued = new Set(waiting)
  for (const file of waiting) {
    const path = sitePath(file)
    if (ASSETS.has(extname(file))) {
      files.set(path, read(file))
      continue
    }
    /** @param {string} href */
    const link = (href) => {
      if (/^(https?:|mailto:|#)/.test(href)) return href
      const [target = '', hash] = href.split('#')
      const to = posix.normalize(posix.join(dirname(file), target)).replace(/\/$/, '')
      if (!generated.has(to) && !existsSync(join(root, to)))
        throw new Error(`${file} links to ${href}, which does not exist.`)
      if (!queued.has(to)) {
        queued.add(to)
        waiting.push(to)
      }
      return `${posix.relative(dirname(path), sitePath(to))}${hash === undefined ? '' : `#${hash}`}`
    }
    const { html, headings } = bodyOf(file, generated.get(file), link)
    const title = file === 'docs/README.md' ? contents.title : (headings[0]?.text ?? file)
    if (file.startsWith('docs/') || PROJECT.includes(file)) {
      for (const { text, id, depth } of headings) index.push([depth === 1 ? path : `${path}#${id}`, title, text])
    }
    files.set(path, shell({ path, title, html }, sections))
  }
  files.set('style.css', read('docs/site/style.css'))
  files.set('search.js', read('docs/site/search.js'))
  files.set('search-index.js', `globalThis.SEARCH_INDEX = ${JSON.stringify(index)}\n`)
  const inSite = (/** @type {string} */ path) => sitePath(`docs/${path}`)
  files.set('llms.txt', llmsText(contents, doors, { page: inSite, door: ({ path }) => inSite(path) }))
  return files
}

/**
 * Where a file of the repository stands in the site.
 * @param {string} file
 */
function sitePath(file) {
  if (file === 'docs/README.md') return 'index.html'
  if (file.startsWith('docs/')) {
    const path = file.slice('docs/'.length)
    if (ASSETS.has(extname(path))) return path
    return path.endsWith('.md') ? path.replace(/\.md$/, '.html') : `${path}/index.html`
  }
  if (ASSETS.has(extname(file))) return `files/${file}`
  if (PROJECT.includes(file)) return `project/${file.toLowerCase().replace(/\.md$/, '.html')}`
  return `files/${file}${isFolder(file) ? '/index' : ''}.html`
}

/**
 * @param {string} file
 * @param {string | undefined} generated
 * @param {(href: string) => string} link
 * @returns {import('./markdown.mjs').Rendered}
 */
function bodyOf(file, generated, link) {
  if (generated !== undefined) return renderMarkdown(generated, link)
  if (isFolder(file)) {
    const inside = readdirSync(join(root, file)).sort()
    return renderMarkdown(
      `# ${file}\n\n${inside.map((name) => `- [${name}](${posix.basename(file)}/${name})`).join('\n')}`,
      link,
    )
  }
  const text = read(file)
  if (file.endsWith('.md')) return renderMarkdown(text, link)
  const html = `<h1 id="file">${escapeHtml(file)}</h1>\n<pre><code>${highlight(text, extname(file).slice(1))}</code></pre>`
  return { html, headings: [{ depth: 1, text: file, id: 'file' }] }
}

/** @param {readonly import('./reference.mjs').DoorReference[]} doors */
function doorsPage(doors) {
  const rows = doors.map(
    ({ name, about, path, names }) =>
      `| [\`${name}\`](${posix.basename(path)}) | ${firstSentence(about)} | ${names.length} |`,
  )
  const intro =
    'Every name that the package promises, in the words of its source. What no door lists is ours to change.'
  return ['# Doors', '', intro, '', '| import | what | names |', '| --- | --- | --- |', ...rows].join('\n')
}

/** @param {string | undefined} text */
function titleIn(text) {
  return (/^# (.+)$/m.exec(text ?? '')?.[1] ?? '').replaceAll('`', '')
}

/** @param {string} file */
function read(file) {
  return readFileSync(join(root, file), 'utf8')
}

/** @param {string} file */
function isFolder(file) {
  return statSync(join(root, file), { throwIfNoEntry: false })?.isDirectory() === true
}

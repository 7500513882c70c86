import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../root.mjs'

/**
 * @typedef {object} Page
 * @property {string} path from `docs`: `guide/start.md`
 * @property {string} title its first heading, without marks
 * @property {string | undefined} about one line of what a reader finds there
 */

/** @typedef {{ title: string, about: string, pages: Page[] }} Section */

/** @typedef {{ title: string, summary: string, facts: string[], sections: Section[] }} Contents */

/**
 * The table of contents of the documentation: docs/site/contents.json gives pages their section, their order and a line of
 * what they are about. `guide/*` stands for whatever begins like that and is not named more exactly, and may stand for
 * nothing. Throws where it and the folder do not agree, so that no page is forgotten.
 * @param {string} [folder]
 * @returns {Contents}
 */
export function readContents(folder = join(root, 'docs')) {
  const given = JSON.parse(readFileSync(join(folder, 'site', 'contents.json'), 'utf8'))
  const all = readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .sort()
  /** @type {(entry: string | { page: string }) => string} */
  const pathOf = (entry) => (typeof entry === 'string' ? entry : entry.page)
  /** @type {string[]} */
  const named = given.sections.flatMap((/** @type {any} */ section) => section.pages.map(pathOf))
  const explicit = named.filter((path) => !path.endsWith('*'))
  const beginnings = named.filter((path) => path.endsWith('*')).map((path) => path.slice(0, -1))
  /** @type {(one: string) => string | undefined} the longest beginning that fits */
  const beginningOf = (one) => beginnings.filter((part) => one.startsWith(part)).sort((a, b) => b.length - a.length)[0]
  for (const path of explicit) {
    if (!all.includes(path)) throw new Error(`docs/site/contents.json names docs/${path}, which does not exist.`)
    if (explicit.indexOf(path) !== explicit.lastIndexOf(path))
      throw new Error(`docs/site/contents.json names docs/${path} twice.`)
  }
  const sections = given.sections.map((/** @type {any} */ { title, about, pages }) => ({
    title,
    about,
    pages: pages.flatMap((/** @type {any} */ entry) => {
      const path = pathOf(entry)
      const paths = path.endsWith('*')
        ? all.filter((one) => beginningOf(one) === path.slice(0, -1) && !explicit.includes(one))
        : [path]
      return paths.map((one) => ({ path: one, title: titleOf(folder, one), about: entry.about }))
    }),
  }))
  const placed = sections.flatMap((/** @type {Section} */ section) => section.pages.map(({ path }) => path))
  const forgotten = all.filter((path) => !placed.includes(path))
  if (forgotten.length > 0)
    throw new Error(`docs/site/contents.json has no place for docs/${forgotten.join(', docs/')}.`)
  return { title: given.title, summary: given.summary, facts: given.facts ?? [], sections }
}

/**
 * @param {string} folder
 * @param {string} path
 */
function titleOf(folder, path) {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(folder, path), 'utf8')) ?? []
  if (title === undefined) throw new Error(`docs/${path} has no title ("# …").`)
  return title.replaceAll('`', '')
}

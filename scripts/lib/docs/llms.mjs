import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { root } from '../root.mjs'
import { firstSentence } from './reference.mjs'

/**
 * The documentation for programs that read: what Millrace is, the least that one has to know, its doors, and every page with a line of what it is about.
 * @param {import('./contents.mjs').Contents} contents
 * @param {readonly import('./reference.mjs').DoorReference[]} references
 * @param {{ page: (path: string) => string, door: (reference: import('./reference.mjs').DoorReference) => string }} link
 * @returns {string}
 */
export function llmsText({ title, summary, facts, sections }, references, link) {
  const program = readFileSync(join(root, 'examples', 'quick-start.ts'), 'utf8')
  const lines = [`# ${title}`, '', `> ${summary}`, '', '```ts', program.trimEnd(), '```', '']
  lines.push(...facts.map((fact) => `- ${fact}`), '', '## Doors', '')
  for (const reference of references) {
    lines.push(`- [${reference.name}](${link.door(reference)}): ${firstSentence(reference.about)}`)
  }
  for (const section of sections) {
    lines.push('', `## ${section.title}`, '')
    for (const { path, title: name, about } of section.pages) {
      lines.push(`- [${name}](${link.page(path)})${about === undefined ? '' : `: ${about}`}`)
    }
  }
  return `${lines.join('\n')}\n`
}

/**
 * llms.txt of the repository: pages are linked as files, doors by their source.
 * @param {import('./contents.mjs').Contents} contents
 * @param {readonly import('./reference.mjs').DoorReference[]} references
 */
export function repositoryLlmsText(contents, references) {
  const link = { page: (/** @type {string} */ path) => `docs/${path}`, door: (/** @type {any} */ door) => door.source }
  return llmsText({ ...contents, sections: contents.sections.map(withFolders) }, references, link)
}

/**
 * Pages that `folder/*` stands for as one link to their folder: a list in the repository would change with every one of
 * them, and branches that add one each would meet in it.
 * @param {import('./contents.mjs').Section} section
 * @returns {import('./contents.mjs').Section}
 */
function withFolders(section) {
  const named = section.pages.filter(({ about }) => about !== undefined)
  const folders = new Set(
    section.pages.filter(({ about }) => about === undefined).map(({ path }) => posix.dirname(path)),
  )
  return { ...section, pages: [...named, ...[...folders].map((path) => ({ path, title: path, about: 'all of them' }))] }
}

const BEGIN = '<!-- pages: written by `npm run docs` -->'
const END = '<!-- end of pages -->'

/**
 * docs/README.md with its list of pages brought up to date.
 * @param {string} text
 * @param {import('./contents.mjs').Contents} contents
 */
export function withPageList(text, { sections }) {
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`docs/README.md needs the lines "${BEGIN}" and "${END}".`)
  const lines = sections
    .map(withFolders)
    .flatMap(({ title, about, pages }) => [
      '',
      `## ${title}`,
      '',
      about,
      '',
      ...pages.map((page) => `- [${page.title}](${page.path})${page.about === undefined ? '' : `: ${page.about}`}`),
    ])
  return `${text.slice(0, begin)}${BEGIN}\n${lines.join('\n')}\n\n${text.slice(end)}`
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { doors } from '../doors.mjs'
import { root } from '../root.mjs'
import { exportsOf } from './exports.mjs'
import { docBefore } from './signature.mjs'
import { anchors } from './slug.mjs'

/** @typedef {import('./exports.mjs').Exported} Exported */

/**
 * @typedef {object} DoorReference
 * @property {string} name what a user imports
 * @property {string} source the file that lists its names
 * @property {string} path of its page in the site: `reference/millrace-source.md`
 * @property {string | undefined} about the comment at the top of the door
 * @property {readonly Exported[]} names
 */

/**
 * Every door with what it lists, in the order of package.json.
 * @returns {DoorReference[]}
 */
export function references() {
  return doors().map(({ name, source }) => {
    const text = readFileSync(join(root, source), 'utf8')
    const { program, comments } = parseSync(source, text)
    const about = comments[0]?.start === 0 ? docBefore(text, comments.slice(0, 1), comments[0].end) : undefined
    const isOfFirst =
      about !== undefined && program.body[0]?.type === 'ExportNamedDeclaration' && program.body[0].declaration !== null
    const path = `reference/${name.replaceAll('/', '-')}.md`
    return { name, source, path, about: isOfFirst ? undefined : about, names: exportsOf(source) }
  })
}

/**
 * What the doors promise without a word about it: a name is listed once, where it is declared.
 * @param {readonly DoorReference[]} all
 * @returns {string[]}
 */
export function undocumented(all) {
  const missing = all.flatMap(({ name, about, names }) => [
    ...(about === undefined ? [`${name} (a comment at the top of the door)`] : []),
    ...names.filter(({ doc }) => doc === undefined).map((one) => `${one.name} in ${one.file}`),
  ])
  return [...new Set(missing)]
}

const KINDS = /** @type {const} */ ([
  ['function', 'Functions'],
  ['class', 'Classes'],
  ['constant', 'Values'],
  ['type', 'Types'],
])

/**
 * The page of a door: what each of its names is, in the words of its source.
 * @param {DoorReference} reference
 * @returns {string} Markdown
 */
export function referencePage({ name, about, names }) {
  const groups = KINDS.map(([kind, title]) => ({ title, all: names.filter((one) => one.kind === kind) })).filter(
    ({ all }) => all.length > 0,
  )
  // Ids are given out in the order of the page, as its renderer does.
  const idOf = anchors()
  idOf(name)
  /** @type {Map<string, string>} */
  const idByName = new Map()
  for (const { title, all } of groups) {
    idOf(title)
    for (const one of all) idByName.set(one.name, idOf(one.name))
  }
  const example = names.find(({ kind }) => kind === 'function') ?? names[0]
  const lines = [`# \`${name}\``, '', about ?? '', '', '```ts', `import { ${example?.name} } from '${name}'`, '```', '']
  for (const { title, all } of groups) {
    lines.push(`**${title}:** ${all.map((one) => `[\`${one.name}\`](#${idByName.get(one.name)})`).join(' · ')}`, '')
  }
  for (const { title, all } of groups) {
    lines.push(`## ${title}`, '')
    for (const one of all) {
      lines.push(`### ${one.name}`, '', '```ts', one.signature, '```', '')
      if (one.doc !== undefined) lines.push(docAsMarkdown(one.doc, idByName), '')
      lines.push(`[${one.file}](../../${one.file})`, '')
    }
  }
  return lines.join('\n')
}

/**
 * @param {string} doc
 * @param {ReadonlyMap<string, string>} idByName
 */
function docAsMarkdown(doc, idByName) {
  return doc
    .replace(/\{@link ([\w.]+)\}/g, (_, /** @type {string} */ target) => {
      const id = idByName.get(target.split('.')[0] ?? target)
      return id === undefined ? `\`${target}\`` : `[\`${target}\`](#${id})`
    })
    .replace(/^@example\s*$/gm, '**Example**\n')
    .replace(/^@throws (\w+)/gm, '\n**Throws** `$1`')
    .replace(/^@param (\w+)/gm, '- `$1`:')
}

/**
 * The first sentence of a doc comment, on one line.
 * @param {string | undefined} doc
 */
export function firstSentence(doc) {
  const text = (doc ?? '').split('\n\n')[0]?.replaceAll('\n', ' ') ?? ''
  return /^.*?\.(?=\s|$)/.exec(text)?.[0] ?? text
}

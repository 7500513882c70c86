import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'oxc-parser'
import { doors } from '../../scripts/lib/doors.mjs'
import { root } from '../../scripts/lib/root.mjs'

/** The names that a door exports, types among them, each with the declaration that it leads to (`src/core/ids.ts#newId`). */
export function namesOf(door: string): ReadonlyMap<string, string> {
  const source = doors().find(({ name }) => name === door)?.source
  if (source === undefined) throw new Error(`There is no door "${door}".`)
  const file = join(root, source)
  return new Map([...exportsOf(file).keys()].map((name) => [name, declarationOf(file, name)]))
}

interface Link {
  readonly file: string
  readonly name: string
}

const parsed = new Map<string, ReadonlyMap<string, Link>>()

/** What each export of a file refers to, one step further: itself, if the file declares it. */
function exportsOf(file: string): ReadonlyMap<string, Link> {
  const known = parsed.get(file)
  if (known !== undefined) return known
  const { module } = parseSync(file, readFileSync(file, 'utf8'))
  const imported = new Map<string, Link>()
  for (const { moduleRequest, entries } of module.staticImports)
    for (const { importName, localName } of entries)
      if (moduleRequest.value.startsWith('.') && importName.name !== undefined && importName.name !== null)
        imported.set(localName.value, { file: fileOf(file, moduleRequest.value), name: importName.name })
  const found = new Map<string, Link>()
  for (const { entries } of module.staticExports)
    for (const { exportName, importName, localName, moduleRequest } of entries) {
      if (importName.kind === 'All' || importName.kind === 'AllButDefault')
        throw new Error(`${file} exports everything of another file: list the names.`)
      const name = exportName.name ?? 'default'
      if (moduleRequest?.value.startsWith('.'))
        found.set(name, { file: fileOf(file, moduleRequest.value), name: importName.name ?? 'default' })
      else found.set(name, imported.get(localName.name ?? '') ?? { file, name })
    }
  parsed.set(file, found)
  return found
}

function declarationOf(file: string, name: string): string {
  const next = exportsOf(file).get(name)
  if (next === undefined) throw new Error(`${file} does not export "${name}".`)
  if (next.file === file) return `${relative(root, file)}#${name}`
  return declarationOf(next.file, next.name)
}

const fileOf = (from: string, specifier: string): string => join(dirname(from), specifier).replace(/\.js$/, '.ts')

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A Lua script, put together from its files. */
export interface Script {
  readonly name: string
  readonly source: string
  readonly sha: string
}

/** Puts a script together from files of one folder, in order. They stand beside the module that names them. */
export function scriptFrom(folder: URL, name: string, files: readonly string[]): Script {
  const source = files.map((file) => readFileSync(new URL(`${file}.lua`, folder), 'utf8')).join('\n')
  return Object.freeze({ name, source, sha: createHash('sha1').update(source).digest('hex') })
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/lib/root.mjs'

/** The text of a file of the repository. */
export const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** Every page: those at the root, and all below docs. */
export const pages: readonly string[] = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${String(name)}`)
    .filter((name) => name.endsWith('.md')),
].sort()

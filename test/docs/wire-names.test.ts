import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

describe('names of other projects', () => {
  it('are in the texts of the program only where the page says so', () => {
    const quoted = /(['"`])((?:(?!\1)[^\n])*\b(?:ayepi|crucible|shardworks|nexus)\b(?:(?!\1)[^\n])*)\1/gi
    const isComment = (line: string) => /^\s*(?:\*|\/\/|\/\*)/.test(line)
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    const found = files
      .filter((file) => /\.(?:ts|lua)$/.test(file))
      .flatMap((file) =>
        readFileSync(join(root, 'src', file), 'utf8')
          .split('\n')
          .filter((line) => !isComment(line))
          .flatMap((line) => [...line.matchAll(quoted)].map((match) => match[2])),
      )
    const page = readFileSync(join(root, 'docs/reference/wire-names.md'), 'utf8')
    const listed = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1])

    expect([...new Set(found)].sort()).toEqual([...listed].sort())
  })
})

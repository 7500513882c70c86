/** A block of TypeScript in a page. */
interface CodeBlock {
  /** The line of its first line of code, from 0. */
  readonly line: number
  readonly lines: readonly string[]
  /** A program of its own; the others of a page belong together, as one reads them. */
  readonly isStandalone: boolean
}

/** A module made of a page: its lines are where they are in the page, so that an error names the right one. */
export interface PageModule {
  /** `docs/guide/streams.md` is `docs-guide-streams.ts`. */
  readonly name: string
  readonly text: string
}

/**
 * The programs that a page shows. Its ```` ```ts ```` blocks are one program, in the order of the page, so that what one
 * block declares the next can use; a ```` ```ts standalone ```` block is one by itself. Blocks of other languages are none.
 */
export function modulesOf(page: string, text: string): readonly PageModule[] {
  const lines = text.split('\n')
  const blocks = blocksOf(lines)
  const stem = page.replace(/\.md$/, '').replaceAll('/', '-')
  const together = blocks.filter((block) => !block.isStandalone)
  const alone = blocks.filter((block) => block.isStandalone)
  return [
    ...(together.length === 0 ? [] : [{ name: `${stem}.ts`, text: inPlace(together, lines.length) }]),
    ...alone.map((block) => ({ name: `${stem}-line-${block.line + 1}.ts`, text: inPlace([block], lines.length) })),
  ]
}

function blocksOf(lines: readonly string[]): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { readonly fence: string; readonly info: string; readonly line: number } | undefined
  lines.forEach((text, line) => {
    const [, fence, info] = /^ {0,3}(`{3,})(.*)$/.exec(text) ?? []
    if (fence === undefined || info === undefined) return
    if (open === undefined) {
      open = { fence, info: info.trim(), line: line + 1 }
    } else if (fence.length >= open.fence.length && info.trim() === '') {
      const [language, ...flags] = open.info.split(/\s+/)
      if (language === 'ts' || language === 'typescript') {
        const unknown = flags.find((flag) => flag !== 'standalone')
        if (unknown !== undefined) throw new Error(`line ${open.line}: a code block is \`\`\`ts or \`\`\`ts standalone`)
        blocks.push({ line: open.line, lines: lines.slice(open.line, line), isStandalone: flags.length > 0 })
      }
      open = undefined
    }
  })
  if (open !== undefined) throw new Error(`line ${open.line}: this code block is never closed`)
  return blocks
}

function inPlace(blocks: readonly CodeBlock[], length: number): string {
  const lines = new Array<string>(length).fill('')
  for (const block of blocks) {
    block.lines.forEach((text, i) => {
      lines[block.line + i] = text
    })
  }
  // A file without an import would be a script, and share its names with every other.
  return `${lines.join('\n')}\nexport {}\n`
}

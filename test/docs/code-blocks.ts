/** A fenced block of a page. */
interface Fence {
  /** The line of its first line, from 0. */
  readonly line: number
  readonly lines: readonly string[]
  /** The first word behind the fence. */
  readonly language: string
  /** The other words. */
  readonly flags: readonly string[]
}

/** A module made of a page: its lines are where they are in the page, so that an error names the right one. */
export interface PageModule {
  /** `docs/guide/streams.md` is `docs-guide-streams.ts`. */
  readonly name: string
  readonly text: string
}

/** A program that a page shows together with what it prints. */
export interface PageRun extends PageModule {
  /** The page and line where the program begins. */
  readonly at: string
  readonly output: string
}

/** A line that a page tells its reader to type. */
export interface PageCommand {
  readonly at: string
  readonly command: string
}

/**
 * The programs that a page shows. Its ```` ```ts ```` blocks are one program, in the order of the page, so that what one
 * block declares the next can use; a ```` ```ts standalone ```` block is one by itself, and so is ```` ```ts run ````, which
 * is run besides. Blocks of other languages are none.
 */
export function modulesOf(page: string, text: string): readonly PageModule[] {
  const lines = text.split('\n')
  const blocks = programsOf(fencesOf(lines))
  const together = blocks.filter((block) => block.flags.length === 0)
  const alone = blocks.filter((block) => block.flags.length > 0)
  return [
    ...(together.length === 0 ? [] : [{ name: `${stemOf(page)}.ts`, text: inPlace(together, lines.length) }]),
    ...alone.map((block) => ({ name: nameOf(page, block), text: inPlace([block], lines.length) })),
  ]
}

/** The programs of a page that are run. What each prints stands in the ```` ```text ```` block that follows it. */
export function runsOf(page: string, text: string): readonly PageRun[] {
  const lines = text.split('\n')
  const fences = fencesOf(lines)
  return fences.flatMap((block, index) => {
    const printed = fences[index + 1]
    if (!block.flags.includes('run')) {
      const between = lines.slice(block.line + block.lines.length + 1, printed === undefined ? 0 : printed.line - 1)
      if (block.language === 'ts' && printed?.language === 'text' && /\bprints\b/.test(between.join(' ')))
        throw new Error(`line ${block.line}: the page says what this block prints, so it is \`\`\`ts run`)
      return []
    }
    if (printed?.language !== 'text') {
      throw new Error(`line ${block.line}: a block that is run is followed by what it prints, as \`\`\`text`)
    }
    const at = `${page}:${block.line + 1}`
    return [{ name: nameOf(page, block), text: inPlace([block], lines.length), at, output: printed.lines.join('\n') }]
  })
}

/** The lines of a page's ```` ```sh ```` blocks, those that a backslash continues as one. */
export function commandsOf(page: string, text: string): readonly PageCommand[] {
  return fencesOf(text.split('\n'))
    .filter(({ language }) => language === 'sh')
    .flatMap(({ line, lines }) => {
      const commands: { at: string; command: string; isOpen: boolean }[] = []
      lines.forEach((typed, index) => {
        const last = commands.at(-1)
        const part = typed.replace(/\\$/, '').trim()
        const isOpen = typed.endsWith('\\')
        if (last?.isOpen === true) Object.assign(last, { command: `${last.command} ${part}`, isOpen })
        else if (part !== '') commands.push({ at: `${page}:${line + index + 1}`, command: part, isOpen })
      })
      return commands.map(({ at, command }) => ({ at, command }))
    })
}

function programsOf(fences: readonly Fence[]): readonly Fence[] {
  return fences.filter(({ language, flags, line }) => {
    if (language !== 'ts' && language !== 'typescript') return false
    if (flags.length > 1 || flags.some((flag) => flag !== 'standalone' && flag !== 'run')) {
      throw new Error(`line ${line}: a code block is \`\`\`ts, \`\`\`ts standalone or \`\`\`ts run`)
    }
    return true
  })
}

function fencesOf(lines: readonly string[]): Fence[] {
  const fences: Fence[] = []
  let open: { readonly fence: string; readonly info: string; readonly line: number } | undefined
  lines.forEach((text, line) => {
    const [, fence, info] = /^ {0,3}(`{3,})(.*)$/.exec(text) ?? []
    if (fence === undefined || info === undefined) return
    if (open === undefined) {
      open = { fence, info: info.trim(), line: line + 1 }
    } else if (fence.length >= open.fence.length && info.trim() === '') {
      const [language = '', ...flags] = open.info.split(/\s+/)
      fences.push({ line: open.line, lines: lines.slice(open.line, line), language, flags })
      open = undefined
    }
  })
  if (open !== undefined) throw new Error(`line ${open.line}: this code block is never closed`)
  return fences
}

const stemOf = (page: string) => page.replace(/\.md$/, '').replaceAll('/', '-')

const nameOf = (page: string, { line }: Fence) => `${stemOf(page)}-line-${line + 1}.ts`

function inPlace(blocks: readonly Fence[], length: number): string {
  const lines = new Array<string>(length).fill('')
  for (const block of blocks) {
    block.lines.forEach((text, i) => {
      lines[block.line + i] = text
    })
  }
  // A file without an import would be a script, and share its names with every other.
  return `${lines.join('\n')}\nexport {}\n`
}

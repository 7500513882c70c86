import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { commandsOf, type PageCommand } from './code-blocks.js'
import { pages, read } from './pages.js'
import { wordsOf } from './shell-words.js'

interface Cli {
  readonly commands: readonly unknown[]
  parse(args: readonly string[], commands: readonly unknown[], now: number): Parsed
  check(command: unknown, operands: readonly string[]): void
}
interface Parsed {
  readonly command?: { readonly name: string }
  readonly operands: readonly string[]
}

const typed: readonly PageCommand[] = pages
  .flatMap((page) => commandsOf(page, read(page)))
  .filter(({ command }) => command.startsWith('npx millrace '))

const folder = join(root, 'src', 'cli')

describe('the command lines in the pages', () => {
  it('are there, or nothing would be checked', () => {
    expect(typed.length).toBeGreaterThan(10)
  })

  // A branch without the command line has nothing to hold them against.
  it.runIf(existsSync(folder)).each(typed.map(({ at, command }) => [`${at} ${command}`, command]))(
    '%s is understood',
    { timeout: 120_000 },
    async (_, command) => {
      await expect(understood(command)).resolves.toBeUndefined()
    },
  )

  it.runIf(existsSync(folder))('would not be understood with a mistake in them', async () => {
    await expect(understood('npx millrace lits')).rejects.toThrow('There is no command "lits"')
    await expect(understood('npx millrace list --jsno')).rejects.toThrow('--jsno')
    await expect(understood('npx millrace explain')).rejects.toThrow()
  })
})

/** Reads a command line as the command line itself does; rejects with what it would say. */
async function understood(line: string): Promise<void> {
  const cli = await openCli()
  const [, , ...args] = wordsOf(line)
  const { command, operands } = cli.parse(args, cli.commands, Date.UTC(2026, 0, 1))
  cli.check(command, operands)
}

async function openCli(): Promise<Cli> {
  const load = async (file: string) => (await import(/* @vite-ignore */ join(folder, file))) as Record<string, unknown>
  const [{ COMMANDS }, { parseArguments, checkOperands }] = await Promise.all([
    load('commands/index.ts'),
    load('input/parse.ts'),
  ])
  // The folder is loaded by its path, so that this file compiles without it: the shape is what the casts say.
  return {
    commands: COMMANDS as Cli['commands'],
    parse: parseArguments as Cli['parse'],
    check: checkOperands as Cli['check'],
  }
}

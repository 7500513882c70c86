import type { Command } from './command.js'
import type { Flag, Flags } from './input/flags.js'
import { BACKEND_FLAGS, COMMON_FLAGS } from './input/parse.js'
import { wrap } from './screen.js'
import type { Paint } from './terminal/paint.js'
import { pad, widthOf } from './terminal/width.js'

/** The greatest width of help. */
const PAGE = 100

interface Page {
  readonly columns: number
  readonly paint: Paint
}

/** The overall help: the list of commands, grouped by purpose. */
export function renderOverallHelp(
  groups: readonly (readonly [title: string, commands: readonly Command[]])[],
  { columns, paint }: Page,
): string[] {
  const width = Math.min(columns, PAGE)
  const names = groups.flatMap(([, commands]) => commands.map(({ name }) => widthOf(name)))
  const lines = [
    `${paint('title', 'millrace')} inspects and manages a Millrace backend.`,
    '',
    `Usage: millrace <command> [--backend <address>] [flags]`,
  ]
  for (const [title, commands] of groups) {
    lines.push('', paint('title', title))
    for (const { name, summary } of commands)
      lines.push(...hanging(pad(name, Math.max(...names)), summary, width, paint))
  }
  lines.push(
    '',
    paint('title', 'Backend flags'),
    ...flagLines(BACKEND_FLAGS, width, paint),
    '',
    paint('title', 'Common flags'),
    ...flagLines(COMMON_FLAGS, width, paint),
    '',
    paint('title', 'Exit codes'),
    ...hanging('0', 'done', width, paint),
    ...hanging(
      '1',
      'no: it found a problem, did not find what you asked for, changed nothing, or stopped early',
      width,
      paint,
    ),
    ...hanging('2', 'wrong arguments; nothing was done', width, paint),
    ...hanging('3', 'the backend could not be reached, does not support it, or failed', width, paint),
    '',
    paint('title', 'Examples'),
    ...exampleLines(
      [
        ['millrace demo', 'see what Millrace does; needs no server'],
        ['millrace overview --watch --backend sqlite:./work.db', 'watch it live'],
        ['millrace explain <id>', 'why an item does not run, and what to do'],
      ],
      width,
      paint,
    ),
    '',
    'Help for one command: millrace <command> --help',
  )
  return lines
}

export function renderCommandHelp(command: Command, { columns, paint }: Page): string[] {
  const width = Math.min(columns, PAGE)
  const usage = ['millrace', command.name, command.operands, '[flags]'].filter((word) => word !== '').join(' ')
  const lines = [
    ...wrap(`${command.summary[0]!.toUpperCase()}${command.summary.slice(1)}.`, width),
    '',
    `Usage: ${usage}`,
  ]
  for (const paragraph of command.about) lines.push('', ...wrap(paragraph, width))
  if (Object.keys(command.flags).length > 0)
    lines.push('', paint('title', 'Flags'), ...flagLines(command.flags, width, paint))
  if (command.needsBackend) lines.push('', paint('title', 'Backend flags'), ...flagLines(BACKEND_FLAGS, width, paint))
  lines.push('', paint('title', 'Common flags'), ...flagLines(COMMON_FLAGS, width, paint))
  lines.push('', paint('title', command.examples.length === 1 ? 'Example' : 'Examples'))
  lines.push(...exampleLines(command.examples, width, paint))
  return lines
}

function flagLines(flags: Flags, width: number, paint: Paint): string[] {
  const heads = Object.entries(flags).map(([name, flag]) => flagHead(name, flag))
  const longest = Math.max(0, ...heads.map(widthOf))
  return Object.values(flags).flatMap((flag, i) => hanging(pad(heads[i]!, longest), aboutOf(flag), width, paint))
}

function flagHead(name: string, flag: Flag): string {
  const short = flag.short === undefined ? '' : `-${flag.short}, `
  return `${short}--${name}${flag.kind === 'switch' ? '' : ` ${flag.value}`}`
}

function aboutOf(flag: Flag): string {
  return flag.kind === 'word' ? `${flag.about}: ${flag.words.join(', ')}` : flag.about
}

function hanging(head: string, text: string, width: number, paint: Paint): string[] {
  const indent = ' '.repeat(widthOf(head) + 4)
  const [first = '', ...rest] = wrap(text, width, indent)
  return [`  ${paint('name', head)}  ${first.trimStart()}`, ...rest]
}

function exampleLines(examples: Command['examples'], width: number, paint: Paint): string[] {
  return examples.flatMap(([command, does]) => [`  ${paint('name', command)}`, ...wrap(does, width, '      ')])
}

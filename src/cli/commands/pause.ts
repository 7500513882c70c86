import { closestHint } from '../../core/text/did-you-mean.js'
import type { PauseReport, PauseTarget } from '../../ops/api.js'
import { ACTOR_FLAGS, actorOf } from '../bulk.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { UsageError } from '../usage-error.js'
import { mistypedName } from '../views/unheard-of.js'

const KINDS = ['queue', 'type'] as const

function readSelector(command: string, [kind = '', name = '']: readonly string[]): PauseTarget {
  if (name === '') throw new UsageError('A name is missing.', command)
  switch (kind) {
    case 'queue':
      return { queue: name }
    case 'type':
      return { type: name }
    default:
      throw new UsageError(
        `millrace ${command} takes queue <name> or type <name>, not "${kind}".${closestHint(kind, KINDS)}`,
        command,
      )
  }
}

/** `Type charge`: how a sentence begins. */
function subject({ what, name }: PauseReport): string {
  return `${what === 'type' ? 'Type' : 'Queue'} ${clean(name)}`
}

export const pause = defineCommand({
  name: 'pause',
  summary: 'stop all workers from starting items of a queue or type',
  about: [
    'Running items finish. Paused items keep their place. A name that no item has and no worker serves is refused, because it was probably mistyped; --force pauses it anyway. Exits with 1 if nothing was paused.',
  ],
  operands: 'queue|type <name>',
  atLeast: 2,
  atMost: 2,
  flags: { force: { kind: 'switch', about: 'pause a name that is not in use yet' }, ...ACTOR_FLAGS },
  examples: [['millrace pause queue bulk --why "the bank is down"', 'nothing of that queue starts']],
  async run(call) {
    const { screen, isJson, flags } = call
    const target = readSelector('pause', call.operands)
    const ops = await call.ops()
    const report = await ops.pause(target, { ...actorOf(call), mustBeKnown: !flags.force })
    const { isChanged, isKnown } = report
    if (!isChanged && isKnown === false) {
      screen.note(
        `${(await mistypedName(ops, target)) ?? ''} Nothing was paused. To pause it anyway, add --force.`.trim(),
      )
      if (isJson) screen.json(report)
      return EXIT.negative
    }
    if (isJson) screen.json(report)
    else
      screen.line(isChanged ? `Paused ${report.what} ${clean(report.name)}.` : `${subject(report)} is already paused.`)
    return EXIT.done
  },
})

export const resume = defineCommand({
  name: 'resume',
  summary: 'let workers start items of a paused queue or type again',
  about: ['Exits with 1 if it was not paused.'],
  operands: 'queue|type <name>',
  atLeast: 2,
  atMost: 2,
  flags: ACTOR_FLAGS,
  examples: [['millrace resume type charge', 'charges start again, in their old order']],
  async run(call) {
    const { screen, isJson } = call
    const target = readSelector('resume', call.operands)
    const ops = await call.ops()
    const report = await ops.resume(target, actorOf(call))
    if (isJson) screen.json(report)
    if (report.isChanged) {
      if (!isJson) screen.line(`Resumed ${report.what} ${clean(report.name)}.`)
      return EXIT.done
    }
    const hint = await mistypedName(ops, target)
    screen.note(
      `${subject(report)} is not paused, so there is nothing to resume.${hint === undefined ? '' : ` ${hint}`}`,
    )
    return EXIT.negative
  },
})

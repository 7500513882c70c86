import type { PauseTarget } from '../../ops/api.js'
import { ACTOR_FLAGS, actorOf } from '../bulk.js'
import { type Command, defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { didYouMean, UsageError } from '../usage-error.js'

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
        `millrace ${command} takes queue <name> or type <name>, not "${kind}".${didYouMean(kind, KINDS)}`,
        command,
      )
  }
}

function order(name: 'pause' | 'resume', past: string, rest: Pick<Command, 'summary' | 'about' | 'examples'>): Command {
  return defineCommand({
    ...rest,
    name,
    operands: 'queue|type <name>',
    atLeast: 2,
    atMost: 2,
    flags: ACTOR_FLAGS,
    async run(call) {
      const target = readSelector(name, call.operands)
      const ops = await call.ops()
      await ops[name](target, actorOf(call))
      const [kind = '', what = ''] = call.operands
      if (call.isJson) call.screen.json({ [past.toLowerCase()]: target })
      else call.screen.line(`${past} ${kind} ${clean(what)}.`)
      return EXIT.done
    },
  })
}

export const pause = order('pause', 'Paused', {
  summary: 'stop all workers from starting items of a queue or a type',
  about: ['Running items finish. Paused items keep their place.'],
  examples: [['millrace pause queue bulk --why "the bank is down"', 'nothing of that queue starts']],
})

export const resume = order('resume', 'Resumed', {
  summary: 'resume a paused queue or type',
  about: [],
  examples: [['millrace resume type charge', 'charges start again, in their old order']],
})

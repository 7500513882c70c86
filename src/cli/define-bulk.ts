import type { Ops, Verb } from '../ops/api.js'
import { BULK_FLAGS, runBulk, targetOf } from './bulk.js'
import { type Command, defineCommand } from './command.js'

/** A command that does one thing to an item, to what a search finds, or to all that it can be done to. */
export interface BulkCommand {
  readonly name: string
  readonly verb: Exclude<Verb, 'redrive'>
  readonly past: string
  readonly summary: string
  readonly examples: readonly (readonly [line: string, about: string])[]
  /** It cannot be taken back, so it asks also for a single one. */
  readonly isFinal?: boolean
}

export function defineBulk({ name, verb, past, summary, examples, isFinal = false }: BulkCommand): Command {
  const asks = isFinal
    ? 'It cannot be taken back, so it asks also for a single one'
    : 'It says how many before it acts on more than one, and asks'
  return defineCommand({
    name,
    summary,
    operands: '[<id> | filter …]',
    atMost: 20,
    about: [`Over one item, a search, or --all. ${asks}; where nobody can be asked it needs --yes.`],
    flags: BULK_FLAGS,
    examples,
    async run(call) {
      const target = targetOf(call, name)
      const ops: Ops = await call.ops()
      return runBulk(call, target, { verb, name, past, isFinal, act: (what, options) => ops[verb](what, options) })
    },
  })
}

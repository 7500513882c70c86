import { ACTOR_FLAGS, printOutcome, watched, watching } from '../bulk.js'
import { defineCommand } from '../command.js'
import { actionIdOf } from '../find-id.js'

export const continueAction = defineCommand({
  name: 'continue',
  summary: 'continue an interrupted bulk action',
  operands: '<action>',
  atLeast: 1,
  atMost: 1,
  about: ['Items that it has already changed are not changed again. millrace actions lists all actions.'],
  flags: ACTOR_FLAGS,
  examples: [['millrace continue 0198c5…', 'finish the rest']],
  async run(call) {
    const ops = await call.ops()
    const id = await actionIdOf(ops, call.operands[0]!)
    const { who = call.io.user, why } = call.flags
    const by = { who, ...(why === undefined ? {} : { why }) }
    const report = await watched(call, 'continue', (watch) => ops.continue(id, { ...watching(watch), ...by }))
    return printOutcome(call, `In total, ${report.verb} changed`, report)
  },
})

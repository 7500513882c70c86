import { ACTOR_FLAGS, printOutcome, watched, watching } from '../bulk.js'
import { defineCommand } from '../command.js'

export const continueAction = defineCommand({
  name: 'continue',
  summary: 'continue a bulk action that was interrupted',
  operands: '<action>',
  atLeast: 1,
  atMost: 1,
  about: ['Items that it has already changed are not changed again. millrace actions lists all actions.'],
  flags: ACTOR_FLAGS,
  examples: [['millrace continue 0198c5…', 'finish the rest']],
  async run(call) {
    const ops = await call.ops()
    const { who = call.io.user, why } = call.flags
    const by = { who, ...(why === undefined ? {} : { why }) }
    const report = await watched(call, 'continue', (watch) =>
      ops.continue(call.operands[0]!, { ...watching(watch), ...by }),
    )
    return printOutcome(call, `In total, ${report.verb} changed`, report)
  },
})

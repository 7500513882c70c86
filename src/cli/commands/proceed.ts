import { BY_FLAGS, tellOutcome, watched, watching } from '../bulk.js'
import { defineCommand } from '../command.js'

export const proceed = defineCommand({
  name: 'proceed',
  summary: 'go on with a bulk action that did not come to its end',
  operands: '<action>',
  atLeast: 1,
  atMost: 1,
  about: ['What it has done already is not done again. millrace actions lists them.'],
  flags: BY_FLAGS,
  examples: [['millrace proceed 0198c5…', 'the rest of it']],
  async run(call) {
    const ops = await call.ops()
    const { who = call.io.user, why } = call.flags
    const by = { who, ...(why === undefined ? {} : { why }) }
    const report = await watched(call, 'proceed', (watch) =>
      ops.proceed(call.operands[0]!, { ...watching(watch), ...by }),
    )
    return tellOutcome(call, `All in all, ${report.verb} took`, report)
  },
})

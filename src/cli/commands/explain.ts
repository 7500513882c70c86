import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { itemIdOf } from '../find-id.js'
import { stepsOf } from '../views/next-steps.js'
import { renderReasons } from '../views/reasons.js'

export const explain = defineCommand({
  name: 'explain',
  summary: 'say why an item is not running, and how to fix that; the deciding reason first',
  operands: '<id>',
  atLeast: 1,
  atMost: 1,
  about: ['Exits with 1 if the backend has no such item.'],
  examples: [['millrace explain charge/o-3', 'why it has not finished']],
  async run({ screen, operands, isJson, typed, ops: open }) {
    const ops = await open()
    const id = await itemIdOf({ screen, isJson }, ops, operands[0]!)
    const reasons = await ops.explain(id)
    if (isJson) screen.json({ id, reasons })
    else {
      const shown = reasons.map(async (reason) => ({
        ...reason,
        commands: (await stepsOf(reason.code, id, ops)).map((words) => typed(words)),
      }))
      screen.lines(renderReasons(await Promise.all(shown), screen.columns, screen.paint))
    }
    return reasons[0].code === 'unknown' ? EXIT.negative : EXIT.done
  },
})

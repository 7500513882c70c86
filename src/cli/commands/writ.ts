import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { renderWrit } from '../views/writ.js'

export const writ = defineCommand({
  name: 'writ',
  summary: 'one writ: its phase, links and rigs, why it is stuck, and what the retry observer decided',
  operands: '<id>',
  atLeast: 1,
  atMost: 1,
  examples: [['millrace writ w-0198c5…', 'why does it not continue?']],
  async run({ screen, operands, isJson, ops: open }) {
    const id = operands[0]!
    const ops = await open({ guild: true })
    const found = await ops.writ(id)
    if (found === undefined) {
      screen.note(`The guild has no writ "${clean(id)}".`)
      return EXIT.negative
    }
    if (isJson) screen.json(found)
    else screen.lines(renderWrit(found, screen))
    return EXIT.done
  },
})

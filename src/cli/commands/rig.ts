import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { renderRig } from '../views/writ.js'

export const rig = defineCommand({
  name: 'rig',
  summary: 'show one rig: which engines have run, are running, or wait for others',
  operands: '<id>',
  atLeast: 1,
  atMost: 1,
  examples: [['millrace rig rig-0198c5…', 'how far has it come?']],
  async run({ screen, operands, isJson, ops: open }) {
    const id = operands[0]!
    const ops = await open({ guild: true })
    const found = await ops.rig(id)
    if (found === undefined) {
      screen.note(`The guild has no rig "${clean(id)}".`)
      return EXIT.negative
    }
    if (isJson) screen.json(found)
    else screen.lines(renderRig(found, screen))
    return EXIT.done
  },
})

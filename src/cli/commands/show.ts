import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { itemIdOf } from '../find-id.js'
import { clean } from '../terminal/clean.js'
import { renderItem } from '../views/item.js'

export const show = defineCommand({
  name: 'show',
  summary: 'show one item: its state, attempts, timeline and payloads',
  operands: '<id>',
  atLeast: 1,
  atMost: 1,
  flags: { full: { kind: 'switch', about: 'the whole input and result, however long' } },
  examples: [['millrace show charge/o-3', 'what happened to it']],
  async run({ io, screen, flags, operands, isJson, ops: open }) {
    const ops = await open()
    const id = await itemIdOf({ screen, isJson }, ops, operands[0]!)
    const item = await ops.item(id)
    if (item === undefined) {
      screen.note(
        `No item has the id "${clean(id)}" or one that begins with it. Ended items are removed after their retention time.`,
      )
      return EXIT.negative
    }
    if (isJson) screen.json(item)
    else {
      const { columns, paint } = screen
      screen.lines(renderItem(item, { now: io.clock.now(), columns, paint, isFull: flags.full }))
    }
    return EXIT.done
  },
})

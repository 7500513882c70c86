import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { WRIT_COLUMNS, writCells } from '../views/writ.js'

const MOST = 50

export const writs = defineCommand({
  name: 'writs',
  summary: "the guild's writs by phase, type or parent, the newest first",
  about: ["Reads the guild's documents (Stacks) in the same file or database. Looking creates nothing."],
  flags: {
    phase: { kind: 'text', value: '<phase>', about: 'in this phase' },
    type: { kind: 'text', value: '<type>', about: 'of this type' },
    parent: { kind: 'text', value: '<id>', about: 'children of this writ' },
    limit: { kind: 'number', value: '<n>', short: 'n', min: 1, isWhole: true, about: 'how many at most; default: 50' },
    offset: { kind: 'number', value: '<n>', min: 0, isWhole: true, about: 'leave out so many first' },
  },
  examples: [['millrace writs --phase stuck --backend sqlite:./stacks.sqlite', 'what needs somebody']],
  async run({ screen, flags, isJson, ops: open }) {
    const { phase, type, parent, limit = MOST, offset } = flags
    const ops = await open({ guild: true })
    const found = await ops.writs({
      ...(phase === undefined ? {} : { phase }),
      ...(type === undefined ? {} : { type }),
      ...(parent === undefined ? {} : { parentId: parent }),
      ...(offset === undefined ? {} : { offset }),
      limit,
    })
    if (isJson) screen.json({ writs: found })
    else if (found.length === 0) screen.line('No writ matches.')
    else {
      screen.table(WRIT_COLUMNS, found.map(writCells))
      if (found.length === limit) screen.note(`There may be more: --offset ${(offset ?? 0) + limit}`)
    }
    return EXIT.done
  },
})

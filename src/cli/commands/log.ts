import { instantText } from '../../ops/duration-text.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'

const MOST = 50

export const log = defineCommand({
  name: 'log',
  summary: 'the last acts of people and tools: who, what and why, the newest first',
  flags: {
    limit: { kind: 'number', value: '<n>', short: 'n', min: 1, isWhole: true, about: 'how many at most; default: 50' },
  },
  examples: [['millrace log --limit 10', 'who did what lately']],
  async run({ screen, flags, isJson, ops: open }) {
    const ops = await open()
    const entries = await ops.log(flags.limit ?? MOST)
    if (isJson) screen.json({ log: entries })
    else if (entries.length === 0) screen.line('Nobody has done anything yet.')
    else
      screen.table(
        [{ title: 'when' }, { title: 'who', min: 8 }, { title: 'what', min: 16 }, { title: 'why', min: 8 }],
        entries.map(({ at, who, what, why }) => [instantText(Math.round(at)), who, what, why]),
      )
    return EXIT.done
  },
})

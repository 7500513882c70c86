import { instantText } from '../../ops/duration-text.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'

const MOST = 50

export const log = defineCommand({
  name: 'log',
  summary: 'the latest actions of people and tools: who, what and why, newest first',
  flags: {
    limit: countFlag('how many at most; default: 50', 'n'),
  },
  examples: [['millrace log --limit 10', 'who did what recently']],
  async run({ screen, flags, isJson, ops: open }) {
    const ops = await open()
    const entries = await ops.log(flags.limit ?? MOST)
    if (isJson) screen.json({ log: entries })
    else if (entries.length === 0) screen.line('There are no log entries.')
    else
      screen.table(
        [{ title: 'when' }, { title: 'who', min: 8 }, { title: 'what', min: 16 }, { title: 'why', min: 8 }],
        entries.map(({ at, who, what, why }) => [instantText(Math.round(at)), who, what, why]),
      )
    return EXIT.done
  },
})

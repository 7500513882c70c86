import { instantText } from '../../ops/duration-text.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'

const MOST = 50

export const log = defineCommand({
  name: 'log',
  summary: 'show what people and tools did, and why, newest first',
  flags: {
    limit: countFlag('how many at most; default: 50', 'n'),
  },
  examples: [['millrace log --limit 10', 'who did what recently']],
  async run({ screen, flags, isJson, ops: open }) {
    const ops = await open({ guild: 'if there' })
    const entries = await ops.log(flags.limit ?? MOST)
    if (isJson) screen.json({ log: entries })
    else if (entries.length === 0) screen.line('There are no log entries.')
    else
      screen.table(
        [
          { title: 'when' },
          { title: 'what', min: 50, wraps: true, spare: 0, below: '' },
          { title: 'who', spare: 1, below: 'who' },
          { title: 'why', wraps: true, spare: 2, below: 'why' },
        ],
        entries.map(({ at, who, what, why }) => [instantText(Math.round(at)), what, who, why]),
      )
    return EXIT.done
  },
})

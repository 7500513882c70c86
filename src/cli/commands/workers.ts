import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { wrap } from '../screen.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { agoText } from '../views/times.js'

export const workers = defineCommand({
  name: 'workers',
  summary: 'list the workers seen in the last hour: host, version, what they run and hold',
  examples: [['millrace workers', 'which workers are alive?']],
  async run({ io, screen, isJson, ops: open }) {
    const ops = await open()
    const found = await ops.workers()
    if (isJson) screen.json({ workers: found })
    else if (found.length === 0) screen.lines(wrap('No worker was seen in the last hour.', screen.columns))
    else
      screen.table(
        [
          { title: 'worker', isId: true, spare: 0, below: '' },
          { title: 'host', min: 8 },
          { title: 'alive' },
          { title: 'seen' },
          { title: 'version', spare: 2 },
          { title: 'holds', align: 'right', spare: 1 },
          { title: 'queues', wraps: true, min: 8, spare: 3, below: 'queues' },
          { title: 'types', wraps: true, min: 24, spare: 4, below: 'types' },
        ],
        found.map((one): Cell[] => [
          one.id,
          one.host,
          one.isAlive ? { text: 'yes', tone: 'good' } : { text: 'no', tone: 'bad' },
          agoText(one.seenAt, io.clock.now()),
          one.version,
          one.holds === undefined ? '' : countText(one.holds),
          one.queues.join(', '),
          one.types.join(', '),
        ]),
      )
    return EXIT.done
  },
})

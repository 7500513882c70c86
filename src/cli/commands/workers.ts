import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { agoText } from '../views/times.js'

export const workers = defineCommand({
  name: 'workers',
  summary: 'the workers seen recently: host, version, what they run and hold',
  examples: [['millrace workers', 'which workers are alive?']],
  async run({ io, screen, isJson, ops: open }) {
    const ops = await open()
    const found = await ops.workers()
    if (isJson) screen.json({ workers: found })
    else if (found.length === 0) screen.line('No worker was seen.')
    else
      screen.table(
        [
          { title: 'worker', min: 10 },
          { title: 'host', min: 8 },
          { title: 'alive' },
          { title: 'seen' },
          { title: 'version', spare: 2 },
          { title: 'holds', align: 'right', spare: 1 },
          { title: 'queues', min: 8, spare: 3 },
          { title: 'types', min: 10 },
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

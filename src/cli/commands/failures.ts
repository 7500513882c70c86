import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { classCell } from '../views/states.js'
import { agoText } from '../views/times.js'

const MOST = 50

export const failures = defineCommand({
  name: 'failures',
  summary: 'dead and retrying items grouped by failure, largest groups first',
  about: ['Items with the same fingerprint failed the same way: list, redrive or discard them together by it.'],
  flags: {
    limit: countFlag('how many groups at most; default: 50', 'n'),
  },
  examples: [
    ['millrace failures', 'what fails, and how often'],
    ['millrace redrive fingerprint:5f3c… --canary', 'give one group another chance, carefully'],
  ],
  async run({ io, screen, flags, isJson, ops: open }) {
    const ops = await open()
    const groups = await ops.failures(flags.limit ?? MOST)
    if (isJson) {
      screen.json({ failures: groups })
      return EXIT.done
    }
    if (groups.length === 0) {
      screen.line('No item is dead or retrying.')
      return EXIT.done
    }
    const now = io.clock.now()
    screen.table(
      [
        { title: 'dead', align: 'right' },
        { title: 'retrying', align: 'right', spare: 1 },
        { title: 'type', min: 8, spare: 0 },
        { title: 'class', spare: 2 },
        { title: 'first', spare: 5 },
        { title: 'last', spare: 3 },
        { title: 'fingerprint', min: 16 },
        { title: 'one of them', min: 10, spare: 4 },
        { title: 'error', min: 14 },
      ],
      groups.map((group): Cell[] => [
        group.dead === 0 ? { text: '0', tone: 'dim' } : { text: countText(group.dead), tone: 'bad' },
        group.retrying === 0 ? { text: '0', tone: 'dim' } : { text: countText(group.retrying), tone: 'warn' },
        group.type,
        classCell(group.class),
        agoText(group.firstAt, now),
        agoText(group.lastAt, now),
        group.fingerprint,
        group.sample.id,
        group.sample.error,
      ]),
    )
    return EXIT.done
  },
})

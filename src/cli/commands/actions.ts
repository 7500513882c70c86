import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { selectorText } from '../input/filters.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { agoText } from '../views/times.js'

export const actions = defineCommand({
  name: 'actions',
  summary: 'bulk actions and their progress, newest first',
  examples: [['millrace actions', 'find an unfinished one, then: millrace continue <action>']],
  async run({ io, screen, isJson, ops: open }) {
    const ops = await open()
    const found = await ops.actions()
    if (isJson) screen.json({ actions: found })
    else if (found.length === 0) screen.line('There were no bulk actions.')
    else
      screen.table(
        [
          { title: 'action', min: 12 },
          { title: 'verb' },
          { title: 'state' },
          { title: 'done', align: 'right' },
          { title: 'passed', align: 'right', spare: 4 },
          { title: 'total', align: 'right' },
          { title: 'started', spare: 2 },
          { title: 'who', min: 8, spare: 3 },
          { title: 'target', min: 10 },
          { title: 'why', min: 8, spare: 5 },
        ],
        found.map((one): Cell[] => [
          one.id,
          one.verb,
          { text: one.state, tone: one.state === 'done' ? 'good' : 'warn' },
          countText(one.done),
          countText(one.passed),
          countText(one.total),
          agoText(one.startedAt, io.clock.now()),
          one.who,
          selectorText(one.target),
          one.because ?? one.why,
        ]),
      )
    return EXIT.done
  },
})

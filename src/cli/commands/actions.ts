import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { selectorText } from '../input/filters.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { agoText } from '../views/times.js'

export const actions = defineCommand({
  name: 'actions',
  summary: 'list bulk actions and their progress, newest first',
  examples: [['millrace actions', 'find an unfinished one, then: millrace continue <action>']],
  async run({ io, screen, isJson, ops: open }) {
    const ops = await open()
    const found = await ops.actions()
    if (isJson) screen.json({ actions: found })
    else if (found.length === 0) screen.line('There are no bulk actions.')
    else
      screen.table(
        [
          { title: 'action', isId: true, spare: 0, below: '' },
          { title: 'verb' },
          { title: 'state' },
          { title: 'done', align: 'right' },
          { title: 'passed', align: 'right', spare: 2 },
          { title: 'total', align: 'right' },
          { title: 'started', spare: 1 },
          { title: 'who', spare: 3, below: 'who' },
          { title: 'target', isId: true, spare: 4, below: 'target' },
          { title: 'why', wraps: true, spare: 5, below: 'why' },
          { title: 'stopped because', wraps: true, spare: 6, below: 'stopped because' },
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
          one.why,
          one.because ?? '',
        ]),
      )
    return EXIT.done
  },
})

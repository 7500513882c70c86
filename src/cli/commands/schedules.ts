import type { ScheduleReport } from '../../ops/api.js'
import { durationText, instantText } from '../../ops/duration-text.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { clean } from '../terminal/clean.js'
import type { Cell } from '../terminal/table.js'
import { agoText } from '../views/times.js'

const FIRES = 3

/** Its rule has no further occurrence. */
const isOver = ({ fires }: ScheduleReport) => fires.length === 0

export const schedules = defineCommand({
  name: 'schedules',
  summary: 'list schedules with their next runs, and the clock changes in between',
  flags: {
    fires: countFlag('how many occurrences of each; default: 3', 'n'),
  },
  examples: [['millrace schedules --fires 10', 'the next ten of each']],
  async run({ io, screen, flags, isJson, ops: open }) {
    const ops = await open()
    const found = await ops.schedules(flags.fires ?? FIRES)
    if (isJson) {
      screen.json({ schedules: found })
      return EXIT.done
    }
    if (found.length === 0) screen.line('There are no schedules.')
    else
      screen.table(
        [
          { title: 'schedule', min: 8 },
          { title: 'next' },
          { title: '' },
          { title: 'rule', min: 8 },
          { title: 'zone', spare: 1, below: 'zone' },
          { title: 'then', wraps: true, min: 24, spare: 2, below: 'then' },
        ],
        found.map((one): Cell[] => [
          one.name,
          isOver(one) ? { text: 'never', tone: 'dim' } : instantText(one.nextAt),
          isOver(one) ? { text: 'ended', tone: 'dim' } : agoText(one.nextAt, io.clock.now()),
          one.cron ?? one.spec,
          one.timeZone ?? '',
          one.fires.slice(1).map(instantText).join(', '),
        ]),
      )
    for (const { name, timeZone, changes } of found)
      for (const { at, byMs } of changes) {
        const way = byMs > 0 ? 'forward' : 'back'
        screen.line(
          `${clean(name)}: the clocks of ${clean(timeZone ?? 'its zone')} go ${way} by ${durationText(Math.abs(byMs))} at ${instantText(at)}.`,
        )
      }
    return EXIT.done
  },
})

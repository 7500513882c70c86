import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { clean } from '../terminal/clean.js'
import { runLive } from '../terminal/live.js'
import { cut } from '../terminal/width.js'
import { renderOverview } from '../views/overview-table.js'

const EVERY_MS = 2_000
const FASTEST_MS = 100

// Flags and --watch. The numbers are gathered in ops/fleet/overview.ts and laid out in cli/views/overview-table.ts.
export const overview = defineCommand({
  name: 'overview',
  summary: 'count items by queue, type and state, and show the workers',
  about: [
    'With --watch it refreshes every two seconds: on a terminal it draws in place until you press q or Ctrl-C; otherwise it prints one block, or with --json one line, for each refresh.',
  ],
  flags: {
    watch: { kind: 'switch', short: 'w', about: 'refresh continuously' },
    interval: { kind: 'duration', value: '<time>', min: FASTEST_MS, about: 'refresh interval of --watch; default: 2s' },
    times: countFlag('number of refreshes with --watch; default: until you stop it'),
  },
  examples: [
    ['millrace overview --backend sqlite:./work.db', 'once'],
    ['millrace overview --watch --interval 500ms', 'live, twice a second'],
    ['millrace overview --watch --json | jq .rows', 'one line of JSON for each refresh'],
  ],
  async run({ io, screen, flags, isJson, connect, ops: open }) {
    const [{ name }, ops] = await Promise.all([connect(), open({ guild: 'if there' })])
    const { paint } = screen
    if (!flags.watch) {
      const seen = await ops.overview()
      if (isJson) screen.json(seen)
      else screen.lines(renderOverview(seen, { columns: screen.columns, paint, name }))
      return EXIT.done
    }
    let isFirst = true
    await runLive({
      io,
      everyMs: flags.interval ?? EVERY_MS,
      times: flags.times ?? Infinity,
      read: () => ops.overview(),
      render: (seen, trouble) => {
        const columns = Math.max(20, io.out.columns - 1)
        const foot = trouble === undefined ? paint('dim', 'q quits') : paint('bad', cut(troubleText(trouble), columns))
        return [...renderOverview(seen, { columns, paint, name, rows: io.out.rows - 3 }), '', foot]
      },
      print: (seen) => {
        if (isJson) screen.json(seen, 'line')
        else {
          if (!isFirst) screen.line()
          screen.lines(renderOverview(seen, { columns: screen.columns, paint, name }))
        }
        isFirst = false
      },
      failed: (trouble) => screen.note(`millrace: ${troubleText(trouble)}`),
    })
    return EXIT.done
  },
})

function troubleText(trouble: unknown): string {
  return `The last refresh failed: ${clean(trouble instanceof Error ? trouble.message : String(trouble))}`
}

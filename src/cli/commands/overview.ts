import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { runLive } from '../terminal/live.js'
import { cut } from '../terminal/width.js'
import { renderOverview } from '../views/overview.js'

const EVERY_MS = 2_000
const FASTEST_MS = 100

export const overview = defineCommand({
  name: 'overview',
  summary: 'what stands where, per queue and type, and who works on it',
  about: [
    'With --watch it looks again every two seconds: on a terminal it draws in place until you press q or Ctrl-C; elsewhere it prints one block, or with --json one line, for each look.',
  ],
  flags: {
    watch: { kind: 'switch', short: 'w', about: 'look again and again' },
    interval: { kind: 'duration', value: '<time>', min: FASTEST_MS, about: 'how often with --watch; default: 2s' },
    times: {
      kind: 'number',
      value: '<n>',
      min: 1,
      isWhole: true,
      about: 'how many looks with --watch; default: until you end it',
    },
  },
  examples: [
    ['millrace overview --backend sqlite:./work.db', 'one look'],
    ['millrace overview --watch --interval 500ms', 'live, twice a second'],
    ['millrace overview --watch --json | jq .rows', 'one line of JSON for each look'],
  ],
  async run({ io, screen, flags, isJson, reach, ops: open }) {
    const [{ name }, ops] = await Promise.all([reach(), open()])
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
      look: () => ops.overview(),
      render: (seen, trouble) => {
        const columns = Math.max(20, io.out.columns - 1)
        const foot = trouble === undefined ? paint('dim', 'q ends') : paint('bad', cut(troubleText(trouble), columns))
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
  return `The last look failed: ${clean(trouble instanceof Error ? trouble.message : String(trouble))}`
}

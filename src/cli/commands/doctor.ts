import { peekString } from '../../core/safe-read.js'
import type { Ops } from '../../ops/api.js'
import { type Call, defineCommand } from '../command.js'
import { diagnose } from '../doctor/diagnose.js'
import { EXIT } from '../exit.js'
import type { ServerFacts } from '../reach/reached.js'
import { counted } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import { cut, pad, widthOf } from '../terminal/width.js'
import { renderReasons } from '../views/reasons.js'

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'look for what is wrong with a set-up, and say what would mend it',
  about: [
    'Connection, versions of server and storage, pending migrations, clocks of the backend and of the workers, workers of different versions, open work that nobody handles, settings that contradict each other (a lease shorter than the run timeout, retries that go on longer than results are kept), and on Redis what its settings endanger. Changes nothing. Ends with 0 if all is sound, with 1 if it found something.',
  ],
  examples: [
    ['millrace doctor --backend redis://localhost:6379', 'is this set-up sound?'],
    ['millrace doctor --json | jq .findings', 'for a monitor'],
  ],
  async run({ screen, isJson, typed, reach, ops: open }) {
    const reached = await reach()
    const server = await reached.facts()
    const seen = await lookAround(server, open)
    const checks = diagnose({ server, ...seen })
    const findings = checks.flatMap((check) => check.findings)
    const { paint, columns } = screen
    if (isJson)
      screen.json({ backend: reached.name, server: server.server, isSound: findings.length === 0, checks, findings })
    else {
      screen.line(paint('title', cut(clean(reached.name), columns)))
      const width = Math.max(...checks.map(({ name }) => widthOf(name)))
      for (const check of checks) {
        const mark = check.findings.length === 0 ? paint('good', '✓') : paint('bad', '✗')
        screen.line(`${mark} ${pad(check.name, width)}  ${paint('dim', cut(clean(check.seen), columns - width - 4))}`)
        for (const { text, remedy, command } of check.findings) {
          const commands = command === undefined ? [] : [typed(command)]
          screen.lines(renderReasons([{ text, remedy, commands }], columns - 4, paint).map((line) => `    ${line}`))
        }
      }
      screen.line()
      screen.line(findings.length === 0 ? 'All is sound.' : `${counted(findings.length, 'finding')}.`)
    }
    return findings.length === 0 ? EXIT.done : EXIT.negative
  },
})

/** What is on the backend, where its tables are there: doctor is also for those where they are not. */
async function lookAround(server: ServerFacts, open: Call['ops']) {
  const nothing = { rows: undefined, workers: undefined, paused: { queues: [], types: [] } }
  const isWorkThere = server.storage.every(({ part, version }) => part !== 'work' || version > 0)
  if (!isWorkThere) return nothing
  let ops: Ops
  try {
    ops = await open()
    const { rows, workers, paused } = await ops.overview()
    return { rows, workers, paused }
  } catch (error) {
    // The versions have told already.
    if (/^SCHEMA_/.test(peekString(error, 'code') ?? '')) return nothing
    throw error
  }
}

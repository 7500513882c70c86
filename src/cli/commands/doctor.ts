import { peekString } from '../../core/text/safe-read.js'
import type { Ops } from '../../ops/api.js'
import { type Call, defineCommand } from '../command.js'
import type { ServerFacts } from '../connect/connected.js'
import { type Check, diagnose } from '../doctor/diagnose.js'
import { EXIT } from '../exit.js'
import { counted } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'
import { cut, pad, widthOf } from '../terminal/width.js'
import { renderReasons } from '../views/reasons.js'

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'check a setup for problems, and say how to fix them',
  about: [
    'Checks the connection, versions of server and storage, pending migrations, clocks of the backend and of the workers, workers of different versions, open work that no worker handles, settings that contradict each other (a lease shorter than the run timeout, retries that last longer than results are kept), dangerous Redis settings, and events that durable watchers of a guild could not handle. Changes nothing. Exits with 0 if it found no problem, with 1 otherwise.',
  ],
  examples: [
    ['millrace doctor --backend redis://localhost:6379', 'is this setup sound?'],
    ['millrace doctor --json | jq .findings', 'for a monitor'],
  ],
  async run({ screen, isJson, typed, connect, ops: open }) {
    const connected = await connect()
    const server = await connected.facts()
    const seen = await readContents(server, open)
    const checks = diagnose({ server, ...seen })
    const findings = checks.flatMap((check) => check.findings)
    const { paint, columns } = screen
    if (isJson)
      screen.json({ backend: connected.name, server: server.server, isSound: findings.length === 0, checks, findings })
    else {
      screen.line(paint('title', cut(clean(connected.name), columns)))
      const width = Math.max(...checks.map(({ name }) => widthOf(name)))
      for (const check of checks) {
        const mark = markOf(check, paint)
        screen.line(`${mark} ${pad(check.name, width)}  ${paint('dim', cut(clean(check.seen), columns - width - 4))}`)
        for (const { text, remedy, command } of check.findings) {
          const commands = command === undefined ? [] : [typed(command)]
          screen.lines(renderReasons([{ text, remedy, commands }], columns - 4, paint).map((line) => `    ${line}`))
        }
      }
      screen.line()
      screen.line(verdictText(checks, findings.length))
    }
    return findings.length === 0 ? EXIT.done : EXIT.negative
  },
})

function markOf({ findings, isSkipped }: Check, paint: Paint): string {
  if (findings.length > 0) return paint('bad', '✗')
  return isSkipped === true ? paint('dim', '–') : paint('good', '✓')
}

function verdictText(checks: readonly Check[], findings: number): string {
  if (findings > 0) return `${counted(findings, 'finding')}.`
  const skipped = checks.filter(({ isSkipped }) => isSkipped === true).length
  return `No problems found.${skipped === 0 ? '' : ` ${counted(skipped, 'check')} could not be made.`}`
}

/** The contents of the backend. Doctor must also work where the tables are missing. */
async function readContents(server: ServerFacts, open: Call['ops']) {
  const nothing = { rows: undefined, workers: undefined, paused: { queues: [], types: [] } }
  const isWorkThere = server.storage.every(({ part, version }) => part !== 'work' || version > 0)
  if (!isWorkThere) return nothing
  let ops: Ops
  try {
    ops = await open()
    const { rows, workers, paused } = await ops.overview()
    const isGuildThere = server.storage.some(({ part, version }) => part === 'guild' && version > 0)
    const watchers = isGuildThere ? await (await open({ guild: true })).watchers() : undefined
    return { rows, workers, paused, watchers }
  } catch (error) {
    // The check of the versions reports this.
    if (/^SCHEMA_/.test(peekString(error, 'code') ?? '')) return nothing
    throw error
  }
}

// How fast is Millrace beside the libraries that do the same job? All of them in one run, in turns, on private servers; with `--quick`
// in under two minutes. Exits with 1 for each floor that is missed, and for any error, second run, lost item or growing heap.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from '../scripts/lib/root.mjs'
import { readCommandLine } from '../test/support/command-line.js'
import { commit, machine, now } from './lib/circumstances.js'
import type { Figures } from './lib/compare/figures.js'
import { complaints } from './lib/compare/judge.js'
import { compareLatency } from './lib/compare/latency.js'
import { FULL, hasLatency, KINDS, PEERS, QUICK } from './lib/compare/plan.js'
import { page, report } from './lib/compare/report.js'
import { compareThroughput, type Outcome } from './lib/compare/throughput.js'
import type { PlaceKind } from './lib/contenders/contender.js'
import { peersFolder } from './lib/contenders/peers.mjs'
import { openGround } from './lib/ground.js'
import { ContenderError } from './lib/remote-contender.js'

const USAGE = `npm run bench -- [${KINDS.join('] [')}] [--quick]
  --quick        fewer items and rounds, in under two minutes; a floor counts as missed when no round reached it
  --again FILE   measures nothing: prints and judges a run that was stored as JSON`

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals, refuse } = readCommandLine(USAGE, {
    quick: { type: 'boolean', default: false },
    again: { type: 'string' },
  })
  if (values.again !== undefined) return conclude(JSON.parse(readFileSync(values.again, 'utf8')))
  const unknown = positionals.find((word) => !KINDS.includes(word as PlaceKind))
  if (unknown !== undefined) return refuse(`There is no backend "${unknown}".`)
  const kinds = KINDS.filter((kind) => positionals.length === 0 || positionals.includes(kind))
  const isQuick = values.quick === true
  let figures: Figures
  try {
    figures = await measure(kinds, isQuick)
  } catch (error) {
    if (!(error instanceof ContenderError)) throw error
    console.error(error.message)
    return 1
  }
  store(figures, ['compare', ...positionals, ...(isQuick ? ['quick'] : [])].join('-'))
  return conclude(figures)
}

async function measure(kinds: readonly PlaceKind[], isQuick: boolean): Promise<Figures> {
  const plan = isQuick ? QUICK : FULL
  const began = performance.now()
  const say = (text: string) =>
    console.log(`${((performance.now() - began) / 1_000).toFixed(0).padStart(4)} s  ${text}`)
  const outcomes: Outcome[] = []
  const grounds: Partial<Record<PlaceKind, string>> = {}
  for (const kind of kinds) {
    const ground = await openGround(kind)
    grounds[kind] = ground.about
    try {
      outcomes.push(await compareThroughput(ground, plan, say))
      if (hasLatency(kind)) outcomes.push(await compareLatency(ground, plan, say))
    } finally {
      await ground.close()
    }
  }
  return {
    at: now(),
    command: ['npm run bench --', ...process.argv.slice(2)].join(' ').replace(/ --$/, ''),
    commit: commit(),
    machine: machine(),
    isQuick,
    grounds,
    versions: Object.fromEntries(kinds.flatMap((kind) => PEERS[kind]).flatMap(versionOf)),
    rows: outcomes.flatMap(({ rows }) => rows),
    calibrations: outcomes.flatMap(({ calibrations }) => calibrations),
    faults: outcomes.flatMap(({ faults }) => faults),
  }
}

/** Prints what was found, and yields the exit code. */
function conclude(figures: Figures): number {
  console.log(`\n${report(figures)}`)
  const wrong = complaints(figures)
  for (const one of wrong) console.error(one)
  return wrong.length === 0 ? 0 : 1
}

function store(figures: Figures, name: string): void {
  const folder = join(root, 'bench', 'results')
  mkdirSync(folder, { recursive: true })
  const file = join(folder, name)
  writeFileSync(`${file}.json`, `${JSON.stringify(figures)}\n`)
  writeFileSync(`${file}.md`, page(figures))
  console.log(`\nStored in ${relative(root, file)}.json and .md`)
}

/** Its name and version; the plain queue is ours, and has none. */
function versionOf(name: string): [string, string][] {
  try {
    const { version } = JSON.parse(readFileSync(join(peersFolder, 'node_modules', name, 'package.json'), 'utf8'))
    return [[name, version]]
  } catch {
    return []
  }
}

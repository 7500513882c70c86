import { NAMES, short } from '../compare/judge.js'
import { KINDS } from '../compare/plan.js'
import { calibrationLine } from '../compare/report.js'
import { AXES, type Point } from './axes.js'
import { processorUs } from './limits.js'
import { linePlot } from './line-plot.js'
import type { Sizes } from './sizes.js'
import type { Circumstances, GrowthOf, Measured, RestOf, Stored } from './stored.js'

/** What each figure is called in a table. */
const FIGURES: Readonly<Record<string, string>> = {
  clientUs: 'processor time, client, µs',
  serverUs: 'server, µs',
  drain: 'drained /s',
  add: 'added in bulk /s',
  heapMb: 'live heap of the worker, MB',
  peakMb: 'its peak memory, MB',
  storedMb: 'stored, MB',
  mbPerSecond: 'input drained, MB/s',
  leastShare: 'smallest share of a process',
}

const UNITS = {
  cost: 'µs of processor time for each drained item, client and server',
  rate: 'items drained a second',
} as const

const PLOTTED: Readonly<Record<keyof typeof UNITS, (figures: Point['figures']) => number>> = {
  cost: processorUs,
  rate: ({ drain = 0 }) => drain,
}

/** The name of the plot of an axis, beside the page. */
const plotFile = (axis: string, { scale }: Pick<Stored, 'scale'>) =>
  `growth-${axis}${scale === 'medium' ? '' : `-${scale}`}.svg`

const isGrowth = (one: Measured): one is GrowthOf => one.what !== 'rest'

/** The page of everything that is stored, and its plots by the names of their files. */
export function growthPage(stored: Stored): { readonly page: string; readonly plots: ReadonlyMap<string, string> } {
  const plots = new Map<string, string>()
  // In the same order whenever they were measured.
  const measured = stored.measured.toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))
  const lines = [
    '# How cost grows',
    '',
    `\`npm run bench -- growth\`, scale ${stored.scale}. Items have inputs of 110 bytes.`,
  ]
  for (const name of Object.keys(AXES) as (keyof Sizes)[]) {
    const axis = AXES[name]
    const of = measured.filter(isGrowth).filter(({ what }) => what === name)
    if (of.length === 0) continue
    const file = plotFile(name, stored)
    plots.set(
      file,
      linePlot({
        title: axis.title,
        x: axis.of,
        y: UNITS[axis.plotted],
        lines: of.map(({ kind, points }) => ({
          name: NAMES[kind],
          colour: KINDS.indexOf(kind),
          points: points.map(({ size, figures }) => [size, PLOTTED[axis.plotted](figures)] as const),
        })),
      }),
    )
    lines.push('', `## ${axis.title}`, '', `![${axis.title}](${file})`)
    for (const one of of) lines.push('', ...growthTable(one))
  }
  const atRest = measured.filter((one): one is RestOf => one.what === 'rest')
  if (atRest.length > 0) lines.push('', '## At rest', '', ...restTable(atRest))
  return { page: `${lines.join('\n')}\n`, plots }
}

function growthTable({ what, kind, points, circumstances }: GrowthOf): string[] {
  const names = Object.keys(FIGURES).filter((name) => points.some(({ figures }) => name in figures))
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    head(kind, circumstances),
    '',
    row([AXES[what].of, ...names.map((name) => FIGURES[name]!)]),
    row(['---', ...names.map(() => '---')]),
    ...points.map(({ size, figures }) =>
      row([
        size.toLocaleString('en'),
        ...names.map((name) => (figures[name] === undefined ? '' : short(figures[name]))),
      ]),
    ),
  ]
}

function restTable(all: readonly RestOf[]): string[] {
  return [
    'Idle: percent of a core of an idle worker, and of its server. Bytes: of a waiting item and of one that has ended, as they were left, and in',
    'brackets once maintenance has given back the room of what is no longer stored. In memory, of the heap.',
    '',
    ...all.map(({ kind, circumstances }) => `- ${head(kind, circumstances)}`),
    '',
    '| | | idle worker | its server | bytes, waiting | bytes, ended |',
    '| --- | --- | --- | --- | --- | --- |',
    ...all.flatMap(({ kind, contenders }) =>
      contenders.map((one) => {
        const bytes = (left: number, compact: number | undefined) =>
          `${short(left)}${compact === undefined ? '' : ` (${short(compact)})`}`
        const server = one.idleServer === undefined ? '' : `${short(one.idleServer)} %`
        const cells = [NAMES[kind], one.name, `${short(one.idleClient)} %`, server]
        const room = [bytes(one.pending, one.pendingCompact), bytes(one.ended, one.endedCompact)]
        return `| ${[...cells, ...room].join(' | ')} |`
      }),
    ),
  ]
}

const head = (kind: GrowthOf['kind'], { at, commit, machine, about, calibrations }: Circumstances) =>
  `${NAMES[kind]}: ${at}, commit ${commit}, ${machine}; ${about}. ${calibrationLine({ calibrations })}`

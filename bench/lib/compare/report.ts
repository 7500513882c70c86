import type { Figures, Series } from './figures.js'
import { complaints, type Judgement, judge, MEASURES, NAMES, short, type Verdict } from './judge.js'
import { median, type Spread, spreadOf } from './statistics.js'

/** A fixed computation that takes this much longer at its slowest than in the middle, or than its own processor time, had neighbours. */
const NOISY = 1.5

const WORDS: Readonly<Record<Verdict, string>> = {
  goal: 'goal reached',
  floor: 'floor met',
  missed: '**missed**',
  undecided: 'undecided',
  'not judged': '',
}

/** A run as a page of Markdown, with what is wrong with it. */
export function page(figures: Figures): string {
  const wrong = complaints(figures)
  const verdict = figures.isQuick ? 'No floor was missed in every round.' : 'Every floor is met.'
  return `${report(figures)}\n${wrong.length === 0 ? verdict : wrong.map((one) => `- ${one}`).join('\n')}\n`
}

/** Its tables. */
export function report(figures: Figures): string {
  const judgements = judge(figures)
  const { versions, grounds } = figures
  const contenders = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  const lines = [
    `# ${figures.isQuick ? 'A quick look at speed beside the peers' : 'Speed beside the peers'}`,
    '',
    `${figures.at}, ${figures.machine}, commit ${figures.commit}. \`${figures.command}\``,
    '',
    `${Object.values(grounds).join('; ')}. ${contenders.join(', ')}.`,
    '',
    'Medians over rounds in which the contenders take turns; ratios are of ours to the best peer in the same round, with their range.',
    'Ours has its default options, a peer its fastest documented settings. Processor time is µs per item, client + server.',
    '',
    calibrationLine(figures),
    '',
    ...table(judgements),
    '',
    '## All contenders',
    '',
    ...contendersTable(judgements),
  ]
  return `${lines.join('\n')}\n`
}

export function calibrationLine({ calibrations }: Pick<Figures, 'calibrations'>): string {
  if (calibrations.length === 0) return 'Not calibrated.'
  const { median: middle, min, max } = spreadOf(calibrations.map(({ ms }) => ms))
  const line = `A fixed computation between them took ${short(middle)} ms (${short(min)} to ${short(max)}).`
  const shares = calibrations.map((one) => one.ms / one.cpuMs)
  return max > NOISY * middle || median(shares) > NOISY
    ? `${line} The machine was busy with other work, so rates say little.`
    : line
}

function table(judgements: readonly Judgement[]): string[] {
  return [
    '| | ours | best peer | ratio | floor | goal | | processor time, ours | best peer | ratio |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...judgements.map(({ row, best, ratio, bar, verdict, processorRatio }) => {
      const cells = [
        `${NAMES[row.kind]}, ${MEASURES[row.measure]}, ${row.unit}`,
        short(median(row.ours.values)),
        `${short(median(best.values))} (${best.name})`,
        withRange(ratio),
        bar?.floor ?? '',
        bar?.goal ?? '',
        WORDS[verdict],
        processorOf(row.ours),
        processorOf(best),
        processorRatio === undefined ? '' : withRange(processorRatio),
      ]
      return `| ${cells.join(' | ')} |`
    }),
  ]
}

function contendersTable(judgements: readonly Judgement[]): string[] {
  return [
    '| | | median (range) | processor time |',
    '| --- | --- | --- | --- |',
    ...judgements.flatMap(({ row }) =>
      [row.ours, ...row.peers].map(
        (series) =>
          `| ${NAMES[row.kind]}, ${MEASURES[row.measure]}, ${row.unit} | ${series.name} | ${withRange(spreadOf(series.values))} | ${processorOf(series)} |`,
      ),
    ),
  ]
}

const withRange = ({ median: middle, min, max }: Spread) => `${short(middle)} (${short(min)}–${short(max)})`

function processorOf({ processor }: Series): string {
  if (processor === undefined) return ''
  const client = short(median(processor.map(({ clientUs }) => clientUs)))
  const server = median(processor.map(({ serverUs }) => serverUs))
  return server === 0 ? client : `${client} + ${short(server)}`
}

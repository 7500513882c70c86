// How does the cost of an item grow: with what waits, with types, groups, what has ended, processes, the size of an input? And what does it
// cost to do nothing? Pictures and tables in bench/results, of each axis and backend from its last run.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/lib/root.mjs'
import { readCommandLine } from '../test/support/command-line.js'
import { calibrate } from './lib/calibrate.mjs'
import { commit, machine, now } from './lib/circumstances.js'
import { KINDS } from './lib/compare/plan.js'
import type { PlaceKind } from './lib/contenders/contender.js'
import { type Ground, openGround } from './lib/ground.js'
import { measureAtRest } from './lib/growth/at-rest.js'
import { AXES } from './lib/growth/axes.js'
import { missedLimits } from './lib/growth/limits.js'
import { growthPage } from './lib/growth/page.js'
import { type Scale, SIZES, type Sizes } from './lib/growth/sizes.js'
import { type Measured, type Stored, withMeasured } from './lib/growth/stored.js'
import { ContenderError } from './lib/remote-contender.js'

const WORDS = [...(Object.keys(AXES) as (keyof Sizes)[]), 'rest'] as const
type Word = (typeof WORDS)[number]

const USAGE = `npm run bench -- growth [AXIS ...] [BACKEND ...] [--scale small|medium|full]
  AXIS      ${WORDS.join(', ')} (default: all)
  BACKEND   ${KINDS.join(', ')} (default: all)
  --scale   small takes seconds and shows that all works; medium (default) minutes for each axis; full goes to five million items
  --sizes   sizes of one axis to measure instead: 1000,20000
  --again   measures nothing: draws what is stored anew`

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals, refuse } = readCommandLine(USAGE, {
    scale: { type: 'string', default: 'medium' },
    sizes: { type: 'string' },
    again: { type: 'boolean', default: false },
  })
  const scale = values.scale as Scale
  const unknown = positionals.find((word) => !isWord(word) && !isKind(word))
  if (unknown !== undefined) return refuse(`There is neither an axis nor a backend "${unknown}".`)
  if (!(scale in SIZES)) return refuse(`There is no scale "${scale}".`)
  if (values.again === true) {
    store(scale, [])
    return 0
  }
  const words = WORDS.filter((word) => positionals.includes(word) || !positionals.some(isWord))
  const kinds = KINDS.filter((kind) => positionals.includes(kind) || !positionals.some(isKind))
  const sizes = values.sizes?.split(',').map(Number)
  if (sizes !== undefined && (words.length !== 1 || words[0] === 'rest' || !sizes.every((size) => size >= 0))) {
    return refuse('--sizes takes numbers, of exactly one axis.')
  }
  const amounts = sizes === undefined ? SIZES[scale] : { ...SIZES[scale], [words[0]!]: sizes }
  const measured: Measured[] = []
  try {
    for (const kind of kinds) {
      await measureOn(kind, words, amounts, (one) => {
        // At once: what took an hour must not be lost with what fails after it.
        store(scale, [one])
        measured.push(one)
      })
    }
  } catch (error) {
    if (!(error instanceof ContenderError)) throw error
    console.error(error.message)
    return 1
  }
  return conclude({ scale, measured })
}

function isWord(word: string): word is Word {
  return WORDS.includes(word as Word)
}

function isKind(word: string): word is PlaceKind {
  return KINDS.includes(word as PlaceKind)
}

async function measureOn(
  kind: PlaceKind,
  words: readonly Word[],
  amounts: (typeof SIZES)[Scale],
  keep: (one: Measured) => void,
): Promise<void> {
  const ground = await openGround(kind)
  try {
    for (const word of words) {
      // Several processes cannot share what is in the memory of one.
      if (word === 'processes' && kind === 'memory') continue
      keep(await measureOne(ground, word, amounts))
    }
  } finally {
    await ground.close()
  }
}

async function measureOne(ground: Ground, word: Word, amounts: (typeof SIZES)[Scale]): Promise<Measured> {
  const { kind, about } = ground
  const calibrations = [calibrate()]
  const circumstances = { at: now(), commit: commit(), machine: machine(), about, calibrations }
  const say = (text: string) => {
    calibrations.push(calibrate())
    console.log(text)
  }
  return word === 'rest'
    ? { what: word, kind, circumstances, contenders: await measureAtRest(ground, amounts, say) }
    : { what: word, kind, circumstances, points: await AXES[word].measure(ground, amounts, say) }
}

/** Adds to what earlier runs have found on this scale, and draws all of it anew. */
function store(scale: Scale, fresh: readonly Measured[]): void {
  const folder = join(root, 'bench', 'results')
  mkdirSync(folder, { recursive: true })
  const name = scale === 'medium' ? 'growth' : `growth-${scale}`
  const file = join(folder, `${name}.json`)
  const before: Stored = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { scale, measured: [] }
  const stored = withMeasured(before, fresh)
  writeFileSync(file, `${JSON.stringify(stored)}\n`)
  const { page, plots } = growthPage(stored)
  writeFileSync(join(folder, `${name}.md`), page)
  for (const [plot, svg] of plots) writeFileSync(join(folder, plot), svg)
  console.log(`Stored in bench/results/${name}.md, with ${plots.size} plots`)
}

/** Says what is worse than it may be of what was measured now, and yields the exit code. */
function conclude(stored: Stored): number {
  const missed = missedLimits(stored)
  for (const one of missed) console.error(one)
  return missed.length === 0 ? 0 : 1
}

// The program behind `npm run simulate`: random work in a simulated fleet, seed after seed.
import { parseArgs } from 'node:util'
import { SimulationError } from '../../src/testing/simulation/errors.js'
import type { SimulationOptions } from '../../src/testing/simulation/options.js'
import { simulate } from '../../src/testing/simulation/simulate.js'
import { randomWork } from './scenario.js'

const USAGE = `npm run simulate -- [--minutes N | --seeds N] [--seed S] [--plain | --minimal] [--keep-going] [--history | --about ID]
  --minutes N     how long, in minutes of real time (default 1)
  --seeds N       how many seeds, instead of how long
  --seed S        the first seed (default: the time of day); alone, replays that seed
  --plain         on plain ports; --minimal on ports that can do no more than they must
  --keep-going    does not end at the first seed that fails
  --history       prints the whole history of a failing seed; --about ID only the lines that name it`

const values = readArguments()

process.exitCode = values.help ? usage() : await main()

function usage(): number {
  console.log(USAGE)
  return 0
}

async function main(): Promise<number> {
  const seed = numberOf('seed')
  const isReplay = seed !== undefined && values.minutes === undefined && values.seeds === undefined
  const first = seed ?? Date.now() % 1_000_000_000
  const untilMs = performance.now() + (numberOf('minutes') ?? 1) * 60_000
  const seeds = isReplay ? 1 : (numberOf('seeds') ?? Infinity)
  const isOver = (done: number) => done >= seeds || (seeds === Infinity && performance.now() >= untilMs)
  const ground = values.minimal ? 'minimal' : values.plain ? 'plain' : 'native'
  const total = { events: 0, items: 0, runs: 0, crashes: 0, virtualMs: 0 }
  const failed: number[] = []
  const startedAt = performance.now()
  let saidAt = startedAt
  let done = 0
  console.log(`Simulating on ${ground} ground from seed ${first}.`)
  for (; !isOver(done); done += 1) {
    const options: SimulationOptions = randomWork({ seed: first + done, ground })
    try {
      const report = await simulate(options)
      for (const name of ['events', 'items', 'runs', 'crashes', 'virtualMs'] as const) total[name] += report[name]
    } catch (error) {
      if (!(error instanceof SimulationError)) throw error
      failed.push(error.seed)
      console.log(told(error))
      if (!values['keep-going']) break
    }
    if (performance.now() - saidAt > 10_000) {
      saidAt = performance.now()
      console.log(`… ${done + 1} seeds, ${failed.length} failed`)
    }
  }
  const tookMs = performance.now() - startedAt
  console.log(
    `${done} seeds in ${(tookMs / 1000).toFixed(1)} s (${(tookMs / Math.max(1, done)).toFixed(1)} ms each): ` +
      `${total.items} items, ${total.runs} runs, ${total.crashes} crashes, ${total.events} events, ` +
      `${(total.virtualMs / 3_600_000).toFixed(1)} virtual hours.`,
  )
  console.log(failed.length === 0 ? 'Every promise held.' : `Failed: ${failed.join(', ')}. Replay: --seed ${failed[0]}`)
  return failed.length === 0 ? 0 : 1
}

function told(error: SimulationError): string {
  const { about } = values
  if (about !== undefined) return error.history.filter((line) => line.includes(about)).join('\n')
  if (values.history) return `${error.history.join('\n')}\n${error.message.split('\n')[0]}`
  return values['keep-going'] ? error.message.split('\n')[0]! : error.message
}

function numberOf(name: 'minutes' | 'seeds' | 'seed'): number | undefined {
  const text = values[name]
  if (text === undefined) return undefined
  const number = Number(text)
  if (text.trim() !== '' && number >= 0 && Number.isFinite(number)) return number
  console.error(`--${name} must be a number, got "${text}".\n${USAGE}`)
  process.exit(1)
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        minutes: { type: 'string' },
        seeds: { type: 'string' },
        seed: { type: 'string' },
        plain: { type: 'boolean', default: false },
        minimal: { type: 'boolean', default: false },
        'keep-going': { type: 'boolean', default: false },
        history: { type: 'boolean', default: false },
        about: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(1)
  }
}

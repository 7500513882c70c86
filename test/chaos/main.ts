// The program behind `npm run chaos`: a fleet of processes on a real server, killed at random, and a table of what became of it.
import { parseArgs } from 'node:util'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { type ChaosBackend, chaos } from './chaos.js'
import { faultsOf, tableOf } from './table.js'

const BACKENDS: readonly ChaosBackend[] = ['sqlite', 'postgres', 'redis']
const USAGE = `npm run chaos -- [BACKEND …] [--seconds N] [--rate N] [--kill-every MS] [--restarts N] [--everysec] [--seed S]
  BACKEND          ${BACKENDS.join(', ')} (default: all of them)
  --seconds N      how long things are killed (default 120)
  --rate N         items per second (default 400)
  --kill-every MS  how often a process dies (default 2000)
  --restarts N     how often the server does (default 3; Redis by SIGKILL, PostgreSQL the first time)
  --everysec       Redis flushes once a second: what it loses is told, and nothing else may be
  --seed S         of what is killed when (default: the time of day)`

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals } = readArguments()
  if (values.help) {
    console.log(USAGE)
    return 0
  }
  const unknown = positionals.filter((name) => !(BACKENDS as readonly string[]).includes(name))
  if (unknown.length > 0) return refuse(`There is no backend "${unknown[0]}".`)
  const numbers = { seconds: 120, rate: 400, 'kill-every': 2_000, restarts: 3, seed: Date.now() % 1_000_000 }
  for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) {
    const text = values[name]
    if (text === undefined) continue
    if (!/^\d+$/.test(text)) return refuse(`--${name} must be a whole number, got "${text}".`)
    numbers[name] = Number(text)
  }
  const { seconds, rate, restarts, seed } = numbers
  const random = seededRandom(seed)
  let faults = 0
  for (const backend of BACKENDS.filter((name) => positionals.length === 0 || positionals.includes(name))) {
    console.log(`\n${backend}: 4 workers, 2 producers, ${seconds} s, seed ${seed}`)
    const report = await chaos({
      backend,
      seconds,
      workers: 4,
      producers: 2,
      killEveryMs: numbers['kill-every'],
      serverRestarts: restarts,
      perSecond: rate,
      appendfsync: values.everysec ? 'everysec' : 'always',
      random,
      say: (line) => console.log(`  ${line}`),
    })
    console.log(tableOf(report))
    const found = faultsOf(report)
    for (const fault of found) console.log(`  ✗ ${fault}`)
    faults += found.length
  }
  console.log(faults === 0 ? 'Nothing was lost, and nothing happened twice.' : `${faults} faults.`)
  return faults === 0 ? 0 : 1
}

function refuse(problem: string): number {
  console.error(`${problem}\n${USAGE}`)
  return 1
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: 'string' },
        rate: { type: 'string' },
        'kill-every': { type: 'string' },
        restarts: { type: 'string' },
        seed: { type: 'string' },
        everysec: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(1)
  }
}

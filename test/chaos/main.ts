// The program behind `npm run chaos`: a fleet of processes on a real server, and a table of what became of its work under faults.
import { readCommandLine } from '../support/command-line.js'
import { chaos } from './chaos.js'
import { type ChaosBackend, FAULTS, type Fault, faultsOn } from './options.js'
import { brokenIn, tableOf } from './table.js'

const BACKENDS: readonly ChaosBackend[] = ['sqlite', 'postgres', 'redis']
const NUMBERS = { seconds: 120, rate: 400, 'kill-every': 2_000, restarts: 3, lease: 3_000 }
const ROUND_MS = 15_000
const USAGE = `npm run chaos -- [BACKEND …] [--seconds N] [--rate N] [--without FAULT,…] [--seed S] …
  BACKEND          ${BACKENDS.join(', ')} (default: all of them)
  --seconds N      how long faults happen (default ${NUMBERS.seconds})
  --rate N         items per second (default ${NUMBERS.rate})
  --lease MS       how long a lease lives without a heartbeat (default ${NUMBERS.lease})
  --kill-every MS  how often a process is killed (default ${NUMBERS['kill-every']})
  --restarts N     how often the server is restarted (default ${NUMBERS.restarts}; Redis by SIGKILL, PostgreSQL the first time)
  --without FAULT  one or more of these, with commas between them:
${Object.entries(FAULTS)
  .map(([fault, what]) => `                   ${fault.padEnd(9)} ${what}`)
  .join('\n')}
  --everysec       Redis flushes once a second: what it loses is reported, and nothing else may be lost
  --seed S         of what happens to whom (default: the time of day)`

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals, refuse } = readCommandLine(USAGE, {
    seconds: { type: 'string' },
    rate: { type: 'string' },
    lease: { type: 'string' },
    'kill-every': { type: 'string' },
    restarts: { type: 'string' },
    without: { type: 'string', multiple: true, default: [] as string[] },
    seed: { type: 'string' },
    everysec: { type: 'boolean', default: false },
  })
  const unknown = positionals.filter((name) => !(BACKENDS as readonly string[]).includes(name))
  if (unknown.length > 0) return refuse(`There is no backend "${unknown[0]}".`)
  const without = values.without.flatMap((list) => list.split(',')).filter((name) => name !== '')
  const noFault = without.find((name) => !(name in FAULTS))
  if (noFault !== undefined) return refuse(`There is no fault "${noFault}".`)
  const numbers = { ...NUMBERS, seed: Date.now() % 1_000_000 }
  for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) {
    const text = values[name]
    if (text === undefined) continue
    if (!/^\d+$/.test(text)) return refuse(`--${name} must be a whole number, got "${text}".`)
    numbers[name] = Number(text)
  }
  const { seconds, rate, restarts, seed } = numbers
  const everyMs: Record<Fault, number> = {
    kills: numbers['kill-every'],
    restarts: (seconds * 1_000) / (restarts + 1),
    crashers: 30_000,
    sigstop: 4_000,
    cuts: 2_000,
    replies: 2_000,
    locks: 1,
    clock: 5_000,
    disk: 10_000,
  }
  let broken = 0
  for (const backend of BACKENDS.filter((name) => positionals.length === 0 || positionals.includes(name))) {
    const faults = faultsOn(backend).filter(
      (fault) => !without.includes(fault) && (fault !== 'restarts' || restarts > 0),
    )
    console.log(`\n${backend}: 4 workers, 2 producers, a waiter, ${seconds} s, seed ${seed}; ${faults.join(', ')}`)
    const report = await chaos({
      backend,
      seconds,
      workers: 4,
      producers: 2,
      leaseMs: numbers.lease,
      everyMs: Object.fromEntries(faults.map((fault) => [fault, everyMs[fault]])),
      roundMs: ROUND_MS,
      perSecond: rate,
      appendfsync: values.everysec ? 'everysec' : 'always',
      seed,
      say: (line) => console.log(`  ${line}`),
    })
    console.log(tableOf(report))
    const found = brokenIn(report)
    for (const one of found) console.log(`  ✗ ${one}`)
    broken += found.length
  }
  console.log(
    broken === 0 ? 'Nothing was lost, and nothing happened twice.' : `${broken} kinds of promise were broken.`,
  )
  return broken === 0 ? 0 : 1
}

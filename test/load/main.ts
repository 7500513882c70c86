// The program behind `npm run load`: a worker under more load than it can take, and a table of how it fared.
import { readCommandLine } from '../support/command-line.js'
import { Ground } from './run-load.js'
import { BACKENDS, isPlayedOn, type LoadBackend, loadOf, SCENARIO_NAMES, type ScenarioName } from './scenarios.js'
import { HEADER, rowOf } from './table.js'

const PROXY_MS = 100
const SLOW_COMMITS_MS = 1_000
const USAGE = `npm run load -- BACKEND SCENARIO [--scale X] [--proxy] [--slow-commits] [--seconds N]
  BACKEND         ${BACKENDS.join(', ')}, or all
  SCENARIO        ${SCENARIO_NAMES.join(', ')}, or all
  --scale X       so much of the items (default 1)
  --proxy         ${PROXY_MS} ms between worker and server, in each direction (postgres, redis)
  --slow-commits  each commit takes ${SLOW_COMMITS_MS} ms longer
  --seconds N     how long the chain goes on, and after how long any other scenario has hung`

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals, refuse } = readCommandLine(USAGE, {
    scale: { type: 'string' },
    seconds: { type: 'string' },
    proxy: { type: 'boolean', default: false },
    'slow-commits': { type: 'boolean', default: false },
  })
  const [backend = '', scenario = ''] = positionals
  const backends = chosen(backend, BACKENDS)
  const scenarios = chosen(scenario, SCENARIO_NAMES)
  if (backends === undefined) return refuse(`There is no backend "${backend}".`)
  if (scenarios === undefined) return refuse(`There is no scenario "${scenario}".`)
  const scale = numberOf(values.scale, 1)
  const seconds = numberOf(values.seconds, undefined)
  if (scale === false || seconds === false) return refuse('--scale and --seconds must be numbers above 0.')
  const far = values.proxy ? backends.filter((name) => name === 'postgres' || name === 'redis') : backends
  if (far.length === 0) return refuse(`${backend} has no connection that --proxy could slow down.`)

  console.log(HEADER)
  let broken = 0
  for (const name of far) broken += await playAll(name)
  console.log(broken === 0 ? 'No limit was broken.' : `${broken} limits were broken.`)
  return broken === 0 ? 0 : 1

  async function playAll(on: LoadBackend): Promise<number> {
    const ground = await Ground.open(on)
    let count = 0
    try {
      for (const name of scenarios!.filter((one: ScenarioName) => isPlayedOn(one, on))) {
        const result = await ground.play({
          scenario: name,
          load: loadOf(name, scale || 1, seconds ? { seconds } : {}),
          ...(values.proxy ? { proxyMs: PROXY_MS } : {}),
          ...(values['slow-commits'] ? { slowCommitsMs: SLOW_COMMITS_MS } : {}),
        })
        console.log(rowOf(on, name, result))
        count += result.broken.length
      }
    } finally {
      await ground.close()
    }
    return count
  }
}

function chosen<T extends string>(word: string, all: readonly T[]): readonly T[] | undefined {
  if (word === 'all') return all
  return all.includes(word as T) ? [word as T] : undefined
}

function numberOf<T>(text: string | undefined, otherwise: T): number | T | false {
  if (text === undefined) return otherwise
  return Number(text) > 0 && Number(text) < Number.POSITIVE_INFINITY ? Number(text) : false
}

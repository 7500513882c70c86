import { setIdGenerator, setTokenGenerator } from '../../core/ids.js'
import { processWide } from '../../core/process/process-wide.js'
import { systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { BrokenPromiseError, SimulationError } from './errors.js'
import { checkAftermath } from './invariants.js'
import { type ResolvedSimulation, resolveSimulation, type SeedReport, type SimulationOptions } from './options.js'
import { bothRepeated, type RepeatedItems, repeatedItems, repeatedText } from './repeated-items.js'
import { type ResolvedScenario, resolveScenario } from './scenario.js'
import { World } from './world.js'

/** What all seeds of a simulation did together. As a text, it is one line to print. */
export interface SimulationReport extends RepeatedItems {
  readonly seeds: number
  readonly events: number
  readonly virtualMs: Ms
  readonly items: number
  readonly runs: number
  readonly crashes: number
  toString(): string
}

/** How often the world is asked whether it has come to rest. */
const REST_PROBE_MS = 500
/** How long a wait may take to notice the end: its longest poll, and a little. */
const HEARING_MS = 12_000

/** Ids are the process's: two concurrent simulations would draw from each other. */
const turns = processWide('simulations', () => ({ last: Promise.resolve() as Promise<unknown> }))

/**
 * Runs your work types in a simulated fleet: virtual time, several processes, one backend, and everything that can go wrong
 * between them. Crashes, pauses, lost and repeated messages, late replies, outages and wrong clocks all come from the seed,
 * so a failing seed replays exactly.
 *
 * After each seed the promises of Millrace are checked (accepted work has ended once, effects happened once, groups closed
 * once, nothing is stuck, every wait has settled), then your own in `check`. Rejects with a `SimulationError` for the first
 * seed that breaks one.
 *
 * Handlers must not wait for anything real: use `process.clock` and `process.call`.
 *
 * @example
 * ```ts
 * await simulate({
 *   seeds: 200,
 *   setup: (world) => {
 *     const charged = new Set<string>()
 *     return {
 *       work: (process) => [
 *         defineWork('charge', async (order: { id: string }, ctx) => {
 *           await process.call('bank', () => charged.add(order.id)) // may be lost, or happen without an answer
 *           return ctx.void()
 *         }),
 *       ],
 *       run: async () => {
 *         for (let n = 0; n < 20; n += 1) await world.enqueue('charge', { id: `order ${n}` })
 *       },
 *       check: () => world.expect(charged.size === 20, 'every order is charged'),
 *     }
 *   },
 * })
 * ```
 */
export function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const resolved = resolveSimulation(options)
  const waiting = turns()
  const run = waiting.last.then(() => simulateSeeds(resolved))
  waiting.last = run.catch(() => undefined)
  return run
}

async function simulateSeeds(o: ResolvedSimulation): Promise<SimulationReport> {
  const total = { seeds: 0, events: 0, virtualMs: 0, items: 0, runs: 0, crashes: 0 }
  let repeated: RepeatedItems = { ranTwice: 0, ranTwiceItems: [] }
  const untilMs = o.minutes === undefined ? Infinity : systemClock.monotonic() + o.minutes * 60_000
  for (let seed = o.firstSeed; total.seeds < o.seeds && systemClock.monotonic() < untilMs; seed += 1) {
    const report = await simulateSeed(o, seed)
    total.seeds += 1
    for (const name of ['events', 'virtualMs', 'items', 'runs', 'crashes'] as const) total[name] += report[name]
    repeated = bothRepeated(repeated, report)
    o.onSeed(report)
  }
  const report = { ...total, ...repeated }
  // Hidden, so that a report is compared and logged as what it says.
  return Object.defineProperty(report, 'toString', { value: () => reportText(report) })
}

function reportText({ seeds, items, runs, crashes, ...repeated }: Omit<SimulationReport, 'toString'>): string {
  return `${seeds} seeds, ${crashes} crashes, ${runs} runs of ${items} items; ${repeatedText(repeated)}`
}

async function simulateSeed(o: ResolvedSimulation, seed: number): Promise<SeedReport> {
  let ids = 0
  let tokens = 0
  setIdGenerator(() => `i${++ids}`)
  setTokenGenerator(() => `t${++tokens}`)
  const world = new World(o, seed)
  try {
    const scenario = resolveScenario(o.setup(world))
    await live(o, world, scenario)
    await checkAftermath(world)
    await scenario.check()
    return reportOf(world)
  } catch (error) {
    throw new SimulationError(seed, error, world.journal.lines, repeatedItems(seed, world.history))
  } finally {
    world.end()
    setIdGenerator()
    setTokenGenerator()
  }
}

/** Trouble while the outside world goes on and for a while at least, then peace until everything is at rest. */
async function live(o: ResolvedSimulation, world: World, scenario: ResolvedScenario): Promise<void> {
  const { scheduler, history } = world
  const run = async (isOver: () => boolean, untilMs: Ms) => {
    const over = await scheduler.run(() => history.broken.length > 0 || isOver(), untilMs)
    if (history.broken[0] !== undefined) throw history.broken[0]
    return over
  }
  world.begin(scenario)
  const outside = { isDone: false, failure: undefined as { readonly error: unknown } | undefined }
  Promise.resolve(scenario.run()).then(
    () => {
      outside.isDone = true
    },
    (error: unknown) => {
      outside.failure = { error }
    },
  )
  await run(() => outside.failure !== undefined, o.troubleMs)
  await run(() => outside.isDone || outside.failure !== undefined, Infinity)
  if (outside.failure !== undefined) throw outside.failure.error
  world.calm()

  let isAtRest = false
  const probe = () => {
    void world.backendState.isAtRest().then((rests) => {
      isAtRest = rests && world.isSettled
      if (!isAtRest) scheduler.schedule(REST_PROBE_MS, undefined, probe)
    })
  }
  probe()
  if (!(await run(() => isAtRest, scheduler.nowMs + o.restWithinMs))) throw await stuck(o, world)
  world.journal.write('world', 'is at rest')
  await run(() => false, scheduler.nowMs + HEARING_MS)
}

async function stuck(o: ResolvedSimulation, world: World): Promise<BrokenPromiseError> {
  const open = (await world.backendState.everything())?.filter(
    ({ status }) => status === 'pending' || status === 'running',
  )
  const which = open?.map(
    ({ envelope, status, worker }) =>
      `${envelope.type} ${envelope.id} (${status}${worker === undefined ? '' : `, held by ${worker}`})`,
  )
  return new BrokenPromiseError(
    'nothing is stuck that could move',
    `${o.restWithinMs} ms after the trouble ended, not everything has: ${which?.slice(0, 10).join(', ') ?? 'a queue is not empty'}.`,
  )
}

function reportOf({ seed, scheduler, history, journal, crashes }: World): SeedReport {
  let runs = 0
  for (const item of history.items.values()) runs += item.runs.length
  return {
    seed,
    events: scheduler.events,
    virtualMs: scheduler.nowMs,
    items: history.items.size,
    runs,
    crashes: crashes.count,
    ...repeatedItems(seed, history),
    fingerprint: journal.fingerprint,
  }
}

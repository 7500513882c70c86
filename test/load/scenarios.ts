/** What a scenario plays: the program of test/load/plays that knows how. */
export type Play = 'drain' | 'parents' | 'chain' | 'unawaited' | 'enqueue-many' | 'stop-mid-drain' | 'users'

/** How much of what. A test may override any of it. */
export interface Load {
  readonly items: number
  readonly inputBytes: number
  readonly resultBytes: number
  /** How long a handler takes; 0 answers immediately. */
  readonly handlerMs: number
  /** The option of `createWork`; undefined leaves its default. */
  readonly visibility?: number
  /** Runs everything concurrently, by `unlimitedDoer()`, instead of with the defaults. */
  readonly isUnlimited: boolean
  /** What each item costs in the heap by itself, on any backend: a handler that runs, a handle that the caller asked for. */
  readonly heapBytes: number
  /** How long an endless scenario goes on, and after how long any other has hung. */
  readonly seconds: number
}

export const BACKENDS = ['memory', 'sqlite', 'postgres', 'redis'] as const
export type LoadBackend = (typeof BACKENDS)[number]

interface Scenario {
  readonly play: Play
  readonly load: Load
  /** With fewer items the scenario would not show what it is for. */
  readonly leastItems?: number
  /** Where it means nothing. */
  readonly notOn?: readonly LoadBackend[]
}

const SMALL: Load = {
  items: 150_000,
  inputBytes: 100,
  resultBytes: 0,
  handlerMs: 0,
  isUnlimited: false,
  heapBytes: 0,
  seconds: 300,
}

export const SCENARIOS = {
  drain: { play: 'drain', load: SMALL },
  'drain-no-window': { play: 'drain', load: { ...SMALL, isUnlimited: true } },
  results: { play: 'drain', load: { ...SMALL, items: 30_000, resultBytes: 20_000 } },
  'long-unlimited': {
    play: 'drain',
    load: { ...SMALL, items: 40_000, handlerMs: 6_000, visibility: 2_000, isUnlimited: true, heapBytes: 5_000 },
  },
  'long-default': { play: 'drain', load: { ...SMALL, items: 2_000, handlerMs: 2_000, visibility: 2_000 } },
  // With as many places as parents, none would have to lend its own.
  parents: { play: 'parents', load: { ...SMALL, items: 100, seconds: 60 }, leastItems: 40 },
  chain: { play: 'chain', load: { ...SMALL, items: 0, seconds: 10 } },
  // In memory the backlog is the heap.
  'big-backlog': { play: 'drain', load: { ...SMALL, items: 50_000, inputBytes: 20_000 }, notOn: ['memory'] },
  unawaited: { play: 'unawaited', load: { ...SMALL, items: 1_000_000, seconds: 600 } },
  'enqueue-many': { play: 'enqueue-many', load: { ...SMALL, items: 1_000_000, heapBytes: 600, seconds: 600 } },
  'stop-mid-drain': { play: 'stop-mid-drain', load: { ...SMALL, items: 50_000, handlerMs: 5 } },
  users: { play: 'users', load: { ...SMALL, items: 50_000 } },
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof SCENARIOS
export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly ScenarioName[]

/** The load of a scenario at this scale. Durations stay: half a lease is not half a load. */
export function loadOf(name: ScenarioName, scale: number, own: Partial<Load> = {}): Load {
  const { load, leastItems = Math.min(1, load.items) }: Scenario = SCENARIOS[name]
  return { ...load, items: Math.max(leastItems, Math.round(load.items * scale)), ...own }
}

export function isPlayedOn(name: ScenarioName, backend: LoadBackend): boolean {
  const { notOn }: Scenario = SCENARIOS[name]
  return notOn?.includes(backend) !== true
}

import { defined } from '../../core/defined.js'
import { MillraceError } from '../../core/error.js'
import {
  integerOption,
  numberOption,
  OptionError,
  OptionTypeError,
  optionsObject,
  stringOption,
} from '../../core/options.js'
import { isObject } from '../../core/text/safe-read.js'
import { type Clock, clockFrom, type Random, systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import type { Backend } from '../../ports/ports.js'
import { createWorkOn, type WorkSystem } from '../../work/create-work.js'
import type { WorkSystemOptions } from '../../work/options.js'
import type { ClerkApi } from '../clerk/api.js'
import { createClerk } from '../clerk/apparatus.js'
import { MANDATE } from '../clerk/types/mandate.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import type { ClockworksRetryApi } from '../clockworks-retry/api.js'
import { createClockworksRetry } from '../clockworks-retry/apparatus.js'
import type { ClockworksRetryConfig, RigRetry } from '../clockworks-retry/policy.js'
import { createFabricator } from '../fabricator/apparatus.js'
import { lostInJson } from '../fabricator/yields.js'
import { createGuild } from '../host/create-guild.js'
import { guild } from '../host/current.js'
import type { GuildConfig, StartedGuild } from '../host/guild.js'
import type { Apparatus, PluginSource } from '../host/plugin.js'
import type { SpiderApi } from '../spider/api.js'
import { createSpider } from '../spider/apparatus.js'
import type { SpiderConfig } from '../spider/config.js'
import type { EngineWork } from '../spider/work/work-runner.js'
import type { Stacks } from '../stacks/api.js'
import { createStacks, type StacksConfig } from '../stacks/apparatus.js'
import type { StacksBackend } from '../stacks/backend.js'
import { memoryStacks } from '../stacks/memory/backend.js'
import { type PostgresStacksOptions, postgresStacks } from '../stacks/postgres/backend.js'
import { sqliteStacks } from '../stacks/sqlite/backend.js'
import type { ChangeEvent } from '../stacks/watch/events.js'
import { Endings } from './endings.js'
import { designOf, type Step } from './step.js'

/** One type of writs: what has to be done for each, one step after the other. */
export interface WritTypeSteps {
  readonly steps: readonly Step[]
  /** How many rigs (attempts of all steps) a writ may have, and how long it waits between them. Default: two, at once. */
  readonly retry?: RigRetry
  /** How long after it was posted a writ fails that has not ended. Default: it has no deadline. */
  readonly deadlineMs?: Ms
}

/** The input of a type: what all of its steps take. */
export type InputOfType<T extends WritTypeSteps> = InputOfStep<T['steps'][number]>

type InputOfStep<S> = (
  S extends { run(input: infer I, ...rest: never[]): unknown }
    ? (input: I) => void
    : never
) extends (input: infer All) => void
  ? All
  : never

/** Options of `startGuild`. */
export interface StartGuildOptions<Types extends Readonly<Record<string, WritTypeSteps>>> {
  /** What is owed, by the name of its type. */
  readonly writTypes: Types
  /** What runs the steps: `sqliteBackend()` or `postgresBackend()`, in all processes the same. Default: the memory of this process. */
  readonly backend?: Backend
  /** Where documents are kept. Default: in the database of `backend`. */
  readonly stacks?: StacksConfig | StacksBackend
  /** How many steps run at the same time, in all processes of the guild together. Default: 3. */
  readonly concurrency?: number
  /** Further options of the work system: its `visibility`, its tracer, … Its `keepAlive` is true here: `stop` ends the process. */
  readonly work?: Omit<WorkSystemOptions, 'backend' | 'queue' | 'pubsub' | 'store' | 'clock' | 'autoStart'>
  /** What `guild.json` would have besides: the configuration of any plugin. */
  readonly config?: GuildConfig
  /** Plugins besides those that every guild of this kind has. */
  readonly plugins?: readonly PluginSource[]
  readonly clock?: Clock | (() => number)
  readonly random?: Random
}

/** What may be said of a new writ besides its input. */
export interface PostOptions {
  /** What people read in lists. Default: the name of the type. */
  readonly title?: string
  /** What it belongs to: a customer, a repository. */
  readonly codex?: string
  readonly parentId?: string
  /** Whether it waits until it is opened. */
  readonly draft?: boolean
  /** It gets no rig before this: epoch ms, or a `Date`. */
  readonly runAt?: number | Date
  /** It fails when it has not ended by this; wins over `deadlineMs` of its type. */
  readonly deadline?: number | Date
}

/** A guild that runs. Below `host` and beside it is the whole system: nothing here is a mode of its own. */
export interface RunningGuild<Types extends Readonly<Record<string, WritTypeSteps>>> {
  /** Posts a writ with this input. It is kept as JSON in the body of the writ. */
  post<K extends keyof Types & string>(type: K, input: InputOfType<Types[K]>, options?: PostOptions): Promise<WritDoc>
  /** Waits until a writ has ended, or is stuck and will not be tried again by itself. */
  ended(id: string): Promise<WritDoc>
  /** The writ; rejects when there is none. */
  show(id: string): Promise<WritDoc>
  /** Ends a writ as cancelled, with its rig. */
  cancel(id: string, options?: { readonly reason?: string }): Promise<WritDoc>
  /** The host, with the API of every plugin: `host.apparatus<FabricatorApi>('fabricator')`. */
  readonly host: StartedGuild
  readonly clerk: ClerkApi
  readonly spider: SpiderApi
  readonly retry: ClockworksRetryApi
  readonly stacks: Stacks
  /** The work system whose items the steps are. */
  readonly work: WorkSystem<readonly [EngineWork]>
  /** Lets steps that run come to their end, then stops everything. A backend that was given stays open. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** What the door hands to the guild, which imports no backend itself. */
export type GuildDoor = Parameters<typeof createWorkOn>[0]

/** Makes a guild of a few types whose writs are fulfilled by steps, and starts it. */
export async function startGuildOn<const Types extends Readonly<Record<string, WritTypeSteps>>>(
  door: GuildDoor,
  given: StartGuildOptions<Types>,
): Promise<RunningGuild<Types>> {
  const options = checkedOptions(given)
  const { writTypes, backend, clock } = options
  let endings: Endings | undefined
  const host = await createGuild({
    strict: true,
    config: configOf(options),
    clock,
    ...(options.random === undefined ? {} : { random: options.random }),
    plugins: [
      own('stacks', createStacks(stacksIn(options))),
      own('clerk', createClerk()),
      own('fabricator', createFabricator()),
      own('spider', createSpider()),
      { package: 'millrace/guild/clockworks-retry', plugin: createClockworksRetry() },
      typesPlugin(writTypes, (id) => endings?.check(id)),
      ...(options.plugins ?? []),
    ],
  })
  const clerk = host.apparatus<ClerkApi>('clerk')
  const spider = host.apparatus<SpiderApi>('spider')
  const retry = host.apparatus<ClockworksRetryApi>('clockworks-retry')
  const stacks = host.apparatus<Stacks>('stacks')
  let work: WorkSystem<readonly [EngineWork]>
  try {
    work = createWorkOn(door, {
      // A started guild is a server: between two writs, and while a killed process's leases last, it waits for work.
      keepAlive: true,
      ...options.work,
      work: [spider.engineWork],
      clock,
      ...(backend === undefined ? {} : { backend }),
    })
  } catch (error) {
    await host.shutdown()
    throw error
  }
  const running = spider.start({ work })
  const waiting = new Endings({ clerk, retry, stacks, clock })
  endings = waiting
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      waiting.close(
        new MillraceError('GUILD_STOPPED', 'The guild was stopped while the caller waited for a writ to end.'),
      )
      await running.stop()
      // First the work: a guild that shuts down before its engines have come to their end takes the store from them.
      try {
        await work.stop()
      } finally {
        await host.shutdown()
      }
    })()
    return stopping
  }
  return Object.freeze<RunningGuild<Types>>({
    async post(type, input, details) {
      const { deadlineMs } = known(writTypes, type)
      const { title, deadline, ...rest } = optionsObject<PostOptions>('post(options)', details, POST_OPTIONS)
      const lost = lostInJson(input, 'input')
      if (lost !== undefined) throw new OptionError('post(input)', `something that JSON can carry: ${lost}`, input)
      const by = deadline ?? (deadlineMs === undefined ? undefined : clock.now() + deadlineMs)
      return clerk.post({
        type,
        title: title ?? type,
        body: JSON.stringify(input),
        ...rest,
        ...(by === undefined ? {} : { deadline: by }),
      })
    },
    ended: async (id) => waiting.of(stringOption('ended(id)', id)),
    show: async (id) => clerk.show(id),
    async cancel(id, how) {
      const { reason } = optionsObject<{ readonly reason?: string }>('cancel()', how, ['reason'])
      return clerk.transition(id, 'cancelled', reason === undefined ? {} : { resolution: reason })
    },
    host,
    clerk,
    spider,
    retry,
    stacks,
    work,
    stop,
    [Symbol.asyncDispose]: stop,
  })
}

const OPTIONS = [
  'writTypes',
  'backend',
  'stacks',
  'concurrency',
  'work',
  'config',
  'plugins',
  'clock',
  'random',
] as const
const TYPE_OPTIONS = ['steps', 'retry', 'deadlineMs'] as const
const POST_OPTIONS = ['title', 'codex', 'parentId', 'draft', 'runAt', 'deadline'] as const

type WritTypes = Readonly<Record<string, WritTypeSteps>>
type CheckedOptions<Types extends WritTypes> = Omit<StartGuildOptions<Types>, 'clock'> & { readonly clock: Clock }

function checkedOptions<Types extends WritTypes>(given: StartGuildOptions<Types>): CheckedOptions<Types> {
  const options = optionsObject<StartGuildOptions<Types>>('startGuild()', given, OPTIONS)
  const { writTypes, concurrency, clock } = options
  if (!isObject(writTypes) || Array.isArray(writTypes) || Object.keys(writTypes).length === 0)
    throw new OptionTypeError('startGuild().writTypes', 'at least one type, by its name', writTypes)
  for (const [name, type] of Object.entries(writTypes)) checkType(`startGuild().writTypes.${name}`, name, type)
  if (concurrency !== undefined) integerOption('startGuild().concurrency', concurrency, { min: 1 })
  return { ...options, writTypes, clock: clock === undefined ? systemClock : clockFrom(clock) }
}

function checkType(path: string, name: string, given: WritTypeSteps): void {
  if (name === MANDATE.name) throw new OptionError(path, 'another name: every guild has a type "mandate" already', name)
  const { steps, deadlineMs } = optionsObject<Partial<WritTypeSteps>>(path, given, TYPE_OPTIONS)
  if (!Array.isArray(steps) || steps.length === 0)
    throw new OptionTypeError(`${path}.steps`, 'at least one step of defineStep()', steps)
  const names = new Set<string>()
  for (const [i, step] of steps.entries()) {
    if (typeof step?.name !== 'string' || typeof step.run !== 'function')
      throw new OptionTypeError(`${path}.steps[${i}]`, 'a step of defineStep()', step)
    if (names.has(step.name)) throw new OptionError(`${path}.steps[${i}]`, 'a step of another name', step.name)
    names.add(step.name)
  }
  if (deadlineMs !== undefined) numberOption(`${path}.deadlineMs`, deadlineMs, { above: 0 })
}

function known(types: WritTypes, name: string): WritTypeSteps {
  const type = Object.hasOwn(types, name) ? types[name] : undefined
  if (type !== undefined) return type
  throw new OptionError('post(type)', `one of ${Object.keys(types).join(', ')}`, name)
}

/** The documents lie beside the work: one database, one backup. */
function stacksIn<Types extends WritTypes>({
  backend,
  stacks,
}: CheckedOptions<Types>): { readonly backend?: StacksBackend } {
  if (stacks !== undefined) return 'begin' in stacks ? { backend: stacks } : {}
  if (backend === undefined) return { backend: memoryStacks() }
  const location = backend.location?.()
  switch (location?.kind) {
    case 'sqlite':
      return { backend: sqliteStacks({ file: location.file }) }
    case 'postgres': {
      const { schema, connectionString, listenConnectionString, pool } = location
      return {
        backend: postgresStacks({
          schema,
          // What the backend was given, it has checked.
          ...defined({ connectionString, listenConnectionString, pool: pool as PostgresStacksOptions['pool'] }),
        }),
      }
    }
    case undefined:
      throw new OptionError(
        'startGuild().stacks',
        'given: this backend keeps no documents. Name a SQLite file or a PostgreSQL database for them',
        stacks,
      )
  }
}

function configOf<Types extends WritTypes>({
  writTypes,
  config = {},
  stacks,
  concurrency,
}: CheckedOptions<Types>): GuildConfig {
  const types = Object.entries(writTypes)
  const spider = (config['spider'] ?? {}) as SpiderConfig
  const retry = (config['clockworks-retry'] ?? {}) as ClockworksRetryConfig
  return {
    ...config,
    ...(stacks === undefined || 'begin' in stacks ? {} : { stacks }),
    spider: {
      ...spider,
      ...(concurrency === undefined ? {} : { maxConcurrentEngines: concurrency }),
      rigTemplates: {
        ...spider.rigTemplates,
        ...Object.fromEntries(types.map(([name, { steps }]) => [name, { engines: enginesOf(name, steps) }])),
      },
      rigTemplateMappings: {
        ...spider.rigTemplateMappings,
        ...Object.fromEntries(types.map(([name]) => [name, name])),
      },
    } satisfies SpiderConfig,
    'clockworks-retry': {
      ...retry,
      types: {
        ...retry.types,
        ...Object.fromEntries(types.flatMap(([name, type]) => (type.retry === undefined ? [] : [[name, type.retry]]))),
      },
    } satisfies ClockworksRetryConfig,
  }
}

const designId = (type: string, step: string): string => `${type}.${step}`

/** The steps as a chain of engines. */
function enginesOf(type: string, steps: readonly Step[]) {
  return steps.map(({ name }, place) => ({
    id: name,
    designId: designId(type, name),
    ...(place === 0 ? {} : { upstream: [steps[place - 1]?.name ?? ''] }),
    // The same expression as in guild.json.
    givens: { body: '$' + '{writ.body}' },
  }))
}

/** The plugin that brings the types and the designs of their steps. */
function typesPlugin(types: WritTypes, onChange: (writId: string) => void): PluginSource {
  const designs = Object.entries(types).flatMap(([type, { steps }]) =>
    steps.map((step) => [designId(type, step.name), designOf(designId(type, step.name), step)] as const),
  )
  return {
    package: 'writ-types-apparatus',
    plugin: {
      apparatus: {
        requires: ['stacks', 'clerk', 'fabricator'],
        supportKit: { engines: Object.fromEntries(designs) },
        start() {
          const clerk = guild().apparatus<ClerkApi>('clerk')
          const changed = (event: ChangeEvent) => onChange(event.type === 'delete' ? event.id : event.entry.id)
          guild().apparatus<Stacks>('stacks').watch('clerk', 'writs', changed, { failOnError: false })
          for (const name of Object.keys(types)) clerk.registerWritType({ ...MANDATE, name })
        },
      },
    },
  }
}

const own = (id: string, apparatus: Apparatus): PluginSource => ({
  package: `millrace/guild/${id}`,
  plugin: { apparatus },
})

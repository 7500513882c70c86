import type { Clock, Random } from '../../core/time/clock.js'
import type { ClerkApi } from '../clerk/api.js'
import type { LinkDoc, WritDoc } from '../clerk/writs/writ.js'
import type { EngineDesign } from '../fabricator/engine-design.js'
import { type ResolvedEngineRetry, resolveEngineRetry } from '../fabricator/engine-retry.js'
import type { FabricatorApi } from '../fabricator/registry.js'
import type { StacksApi } from '../stacks/api.js'
import type { BookSchema } from '../stacks/documents/names.js'
import type { ResolvedSpiderConfig } from './config.js'
import type { BlockTypes } from './engines/block-types.js'
import type { SessionDoc } from './engines/sessions.js'
import type {
  DeadlineRow,
  DispatchRow,
  EngineRow,
  GateRow,
  InputRequestDoc,
  QueueRow,
  RigRow,
  SlotRow,
  WaitRow,
} from './rigs/rig.js'
import type { Templates } from './rigs/templates.js'

/** Spider's books. Every question that a crawl asks has its index. */
export const SPIDER_BOOKS: Readonly<Record<string, BookSchema>> = {
  rigs: {
    indexes: ['status', 'writId', ['status', 'writId'], 'createdAt', ['writId', 'attempt'], ['status', 'createdAt']],
  },
  engines: { indexes: [['rigId', 'place']] },
  queue: { indexes: [['kind', 'at'], ['kind', 'dueAt'], 'rigId', 'sessionId'] },
  dispatch: {
    indexes: [
      ['state', 'at'],
      ['state', 'dueAt'],
      ['isOpen', 'type'],
    ],
  },
  deadlines: { indexes: ['dueAt'] },
  waits: { indexes: [['blockerId', 'at'], 'writId'] },
  gates: { indexes: [['state', 'at']] },
  slots: { indexes: [] },
  'input-requests': { indexes: ['status', 'rigId', 'engineId'] },
}

/** What went wrong where no call was left to reject. */
export interface SpiderWarning {
  readonly code:
    | 'CANCEL_FAILED'
    | 'DEADLINE_FAILED'
    | 'RESULT_DISCARDED'
    | 'SETTLE_FAILED'
    | 'BLOCK_CHECK_FAILED'
    | 'SESSION_CANCEL_FAILED'
    | 'TEMPLATE'
    | 'STEP_FAILED'
  readonly message: string
  readonly error?: unknown
}

export interface SpiderContextOptions {
  readonly stacks: StacksApi
  readonly clerk: ClerkApi
  readonly fabricator: FabricatorApi
  readonly config: ResolvedSpiderConfig & {
    /** Whether the Clerk refuses to complete a writ while something below it is open. */
    readonly isStrict: boolean
  }
  readonly templates: Templates
  readonly blockTypes: BlockTypes
  readonly clock: Clock
  readonly random: Random
  /** This process, as claims name it. */
  readonly owner: string
  readonly newRigId: () => string
  readonly warn: (warning: SpiderWarning) => void
}

/** A run that is going on in this process. */
export interface EngineRun {
  readonly rigId: string
  readonly engineId: string
  readonly token: string
  readonly controller: AbortController
}

const booksOf = (stacks: StacksApi, { sessions }: ResolvedSpiderConfig) => ({
  writs: stacks.readBook<WritDoc>('clerk', 'writs'),
  links: stacks.readBook<LinkDoc>('clerk', 'links'),
  sessions: stacks.readBook<SessionDoc>(sessions.ownerId, sessions.book),
  rigs: stacks.book<RigRow>('spider', 'rigs'),
  engines: stacks.book<EngineRow>('spider', 'engines'),
  queue: stacks.book<QueueRow>('spider', 'queue'),
  dispatch: stacks.book<DispatchRow>('spider', 'dispatch'),
  deadlines: stacks.book<DeadlineRow>('spider', 'deadlines'),
  waits: stacks.book<WaitRow>('spider', 'waits'),
  gates: stacks.book<GateRow>('spider', 'gates'),
  slots: stacks.book<SlotRow>('spider', 'slots'),
  inputRequests: stacks.book<InputRequestDoc>('spider', 'input-requests'),
})

/** What every part of Spider works with: the books, the catalogues, the time. */
export interface SpiderContext extends SpiderContextOptions, ReturnType<typeof booksOf> {
  /**
   * How many of the first candidates a step chooses from. One: strictly the first, which is what `crawl()` promises. Planners of a
   * fleet take any of a few, or they would all meet at the same document and all but one would have to begin again.
   */
  width: number
  /** Runs of this process, by the token of their claim: to be aborted when they are no longer wanted. */
  readonly runs: Map<string, EngineRun>
  /** The guild shuts down: what a run throws from now on is not its failure. */
  isStopping: boolean
  /** Claims that are being given back; Spider does not end before them. */
  readonly givingBack: Set<Promise<void>>
  /** Now, as documents write it. */
  now(): string
  later(ms: number): string
  /** Everything in `fn` happens, or nothing; it runs again when another process was faster. */
  change<R>(fn: () => Promise<R>): Promise<R>
  /** One of the candidates that a query of at most `width` found. */
  pick<T>(candidates: readonly T[]): T | undefined
  design(id: string): EngineDesign | undefined
  /** Whether engines of this design may take only some of the places, because they launch sessions. */
  isLimited(designId: string): boolean
  /** Whether writs of this type get rigs: those that have a template. */
  mayHaveRig(type: string): boolean
  /** How a design is retried inside its rig. */
  retryOf(designId: string): ResolvedEngineRetry
}

export function spiderContext(options: SpiderContextOptions): SpiderContext {
  const { stacks, config, fabricator, clock, random } = options
  const retries = new Map<string, ResolvedEngineRetry>()
  const later = (ms: number): string => new Date(clock.now() + ms).toISOString()
  const design = (id: string) => fabricator.getEngineDesign(id)
  return {
    ...options,
    ...booksOf(stacks, config),
    width: 1,
    runs: new Map(),
    isStopping: false,
    givingBack: new Set(),
    now: () => later(0),
    later,
    change: (fn) => stacks.transaction(fn),
    pick: (candidates) => candidates[candidates.length < 2 ? 0 : Math.floor(random() * candidates.length)],
    design,
    isLimited(designId) {
      if (config.maxConcurrentSessions >= config.maxConcurrentEngines) return false
      const found = design(designId)
      return found?.launchesSessions ?? found?.collect !== undefined
    },
    mayHaveRig: (type) => options.templates.mappings.has(type),
    retryOf(designId) {
      const known = retries.get(designId)
      if (known !== undefined) return known
      const retry = resolveEngineRetry(config.engineRetryOverrides[designId] ?? design(designId)?.retry)
      retries.set(designId, retry)
      return retry
    },
  }
}

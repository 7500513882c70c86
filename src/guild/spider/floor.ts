import type { Clock, Random } from '../../core/clock.js'
import type { ClerkApi } from '../clerk/api.js'
import type { LinkDoc, WritDoc } from '../clerk/writ.js'
import type { EngineDesign } from '../fabricator/engine-design.js'
import { type ResolvedEngineRetry, resolveEngineRetry } from '../fabricator/engine-retry.js'
import type { FabricatorApi } from '../fabricator/registry.js'
import type { Book, ReadOnlyBook, StacksApi } from '../stacks/api.js'
import type { BookSchema } from '../stacks/names.js'
import type { BlockTypes } from './block-types.js'
import type { ResolvedSpiderConfig } from './config.js'
import type { DispatchRow, EngineRow, GateRow, InputRequestDoc, QueueRow, RigRow, SlotRow, WaitRow } from './rig.js'
import type { SessionDoc } from './session.js'
import type { Templates } from './templates.js'

/** How often a change is tried again that lost against another process. Each time, one of the others has got through. */
const RETRIES = 50

/** Spider's books. Every question that a crawl asks has its index. */
export const SPIDER_BOOKS: Readonly<Record<string, BookSchema>> = {
  rigs: {
    indexes: ['status', 'writId', ['status', 'writId'], 'createdAt', ['writId', 'attempt'], ['status', 'createdAt']],
  },
  engines: { indexes: [['rigId', 'place']] },
  queue: { indexes: [['kind', 'at'], ['kind', 'dueAt'], 'rigId', 'sessionId'] },
  dispatch: { indexes: [['state', 'at'], 'isOpen'] },
  waits: { indexes: [['blockerId', 'at'], 'writId'] },
  gates: { indexes: [['state', 'at']] },
  slots: { indexes: [] },
  'input-requests': { indexes: ['status', 'rigId', 'engineId'] },
}

/** What came to light that nobody could be told by a rejection. */
export interface SpiderWarning {
  readonly code: 'RESULT_DISCARDED' | 'BLOCK_CHECK_FAILED' | 'SESSION_CANCEL_FAILED' | 'TEMPLATE' | 'STEP_FAILED'
  readonly message: string
  readonly error?: unknown
}

export interface FloorParts {
  readonly stacks: StacksApi
  readonly clerk: ClerkApi
  readonly fabricator: FabricatorApi
  readonly config: ResolvedSpiderConfig
  readonly templates: Templates
  readonly blockTypes: BlockTypes
  readonly clock: Clock
  readonly random: Random
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

/** What every part of Spider works with: the books, the catalogues, the time. */
export class Floor {
  readonly stacks: StacksApi
  readonly clerk: ClerkApi
  readonly config: ResolvedSpiderConfig
  readonly templates: Templates
  readonly blockTypes: BlockTypes
  readonly clock: Clock
  /** This process, as claims name it. */
  readonly owner: string
  readonly newRigId: () => string
  readonly warn: (warning: SpiderWarning) => void
  readonly writs: ReadOnlyBook<WritDoc>
  readonly links: ReadOnlyBook<LinkDoc>
  readonly sessions: ReadOnlyBook<SessionDoc>
  readonly rigs: Book<RigRow>
  readonly engines: Book<EngineRow>
  readonly queue: Book<QueueRow>
  readonly dispatch: Book<DispatchRow>
  readonly waits: Book<WaitRow>
  readonly gates: Book<GateRow>
  readonly slots: Book<SlotRow>
  readonly inputRequests: Book<InputRequestDoc>
  /**
   * How many of the first candidates a step chooses from. One: strictly the first, which is what `crawl()` promises. Planners of a
   * fleet take any of a few, or they would all meet at the same document and all but one would have to begin again.
   */
  width = 1
  /** Runs of this process, by the token of their claim: to be aborted when they are no longer wanted. */
  readonly runs = new Map<string, EngineRun>()
  /** The guild shuts down: what a run throws from now on is not its failure. */
  isStopping = false
  /** Claims that are being given back; Spider does not end before them. */
  readonly givingBack = new Set<Promise<void>>()
  readonly #fabricator: FabricatorApi
  readonly #random: Random
  readonly #retries = new Map<string, ResolvedEngineRetry>()

  constructor(parts: FloorParts) {
    const { stacks, config } = parts
    this.stacks = stacks
    this.clerk = parts.clerk
    this.config = config
    this.templates = parts.templates
    this.blockTypes = parts.blockTypes
    this.clock = parts.clock
    this.owner = parts.owner
    this.newRigId = parts.newRigId
    this.warn = parts.warn
    this.#fabricator = parts.fabricator
    this.#random = parts.random
    this.writs = stacks.readBook('clerk', 'writs')
    this.links = stacks.readBook('clerk', 'links')
    this.sessions = stacks.readBook(config.sessions.ownerId, config.sessions.book)
    this.rigs = stacks.book('spider', 'rigs')
    this.engines = stacks.book('spider', 'engines')
    this.queue = stacks.book('spider', 'queue')
    this.dispatch = stacks.book('spider', 'dispatch')
    this.waits = stacks.book('spider', 'waits')
    this.gates = stacks.book('spider', 'gates')
    this.slots = stacks.book('spider', 'slots')
    this.inputRequests = stacks.book('spider', 'input-requests')
  }

  /** Now, as documents write it. */
  now(): string {
    return this.later(0)
  }

  later(ms: number): string {
    return new Date(this.clock.now() + ms).toISOString()
  }

  /** Everything in `fn` happens, or nothing; it runs again when another process was faster. */
  change<R>(fn: () => Promise<R>): Promise<R> {
    return this.stacks.transaction(fn, { retries: RETRIES })
  }

  /** One of the candidates that a query of at most `width` found. */
  pick<T>(candidates: readonly T[]): T | undefined {
    const at = candidates.length < 2 ? 0 : Math.floor(this.#random() * candidates.length)
    return candidates[at]
  }

  design(id: string): EngineDesign | undefined {
    return this.#fabricator.getEngineDesign(id)
  }

  /** How a design is tried again inside its rig. */
  retryOf(designId: string): ResolvedEngineRetry {
    const known = this.#retries.get(designId)
    if (known !== undefined) return known
    const retry = resolveEngineRetry(this.config.engineRetryOverrides[designId] ?? this.design(designId)?.retry)
    this.#retries.set(designId, retry)
    return retry
  }
}

import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../core/time/clock.js'
import { isWorker, type PublishedClerk } from '../clerk/apparatus.js'
import { ClerkContext, type ClerkRules } from '../clerk/context.js'
import { familyWatcher, hasOpenChildren } from '../clerk/families/family.js'
import { WritTypes } from '../clerk/types/writ-types.js'
import { setStatus } from '../clerk/writs/status.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import { type DispatchContext, writWatcher } from '../spider/dispatch/dispatch-queue.js'
import type { DeadlineRow, DispatchRow, GateRow, WaitRow } from '../spider/rigs/rig.js'
import type { StacksApi } from '../stacks/api.js'
import { WatchClosedError } from '../stacks/errors.js'
import { publishedSettings } from '../stacks/settings.js'
import { ClientWatchersError, GuildNotStartedError } from './errors.js'

export interface RemoteClerkOptions {
  readonly stacks: StacksApi
  readonly clock: Clock
  /** `allow`: write although plugins of the workers would have to see it in the transaction. */
  readonly differentWatchers: 'refuse' | 'allow'
}

/**
 * The Clerk in a process that loads no plugins. Everything that it has to know of a guild (types, rules) was published by the
 * workers, and is read in each transaction. What has to happen in that transaction happens here, too: families end together, and the
 * dispatch queue is kept. The rest is left to the workers: they find it in the queue.
 */
export class RemoteClerk {
  readonly #options: RemoteClerkOptions
  readonly #context: ClerkContext
  #published: PublishedClerk | undefined
  #rules: ClerkRules | undefined
  #hasOwnWatchers = false

  constructor(options: RemoteClerkOptions) {
    this.#options = options
    this.#context = new ClerkContext(options.stacks, options.clock, () => this.#known())
  }

  /** What is only read needs no guild that has started. */
  get reader(): Pick<ClerkContext, 'writs' | 'need'> {
    return this.#context
  }

  /** Everything in `fn` happens, or nothing; it runs again when another process was faster. */
  async change<R>(fn: (context: ClerkContext) => Promise<R>): Promise<R> {
    const { stacks } = this.#options
    // Watchers have to be there before the transaction that they watch.
    if (this.#published === undefined) this.#watch(await this.#read())
    return stacks.transaction(async () => {
      await this.#read()
      return fn(this.#context)
    })
  }

  async #read(): Promise<PublishedClerk> {
    const published = await publishedSettings<PublishedClerk>(this.#options.stacks, 'clerk')
    if (published === undefined) throw new GuildNotStartedError()
    if (isDeepStrictEqual(published, this.#published)) return published
    const types = new WritTypes()
    for (const type of published.types) types.register(type)
    if (this.#published !== undefined) this.#check(published)
    this.#rules = { types, defaultType: published.defaultType, isStrict: published.strictCompletion }
    return published
  }

  /** A store that a guild of this very process has opened has all watchers already. */
  #watch(published: PublishedClerk): void {
    const { stacks } = this.#options
    if (stacks.watched('clerk', 'writs') === 0) {
      try {
        stacks.watch<WritDoc>('clerk', 'writs', familyWatcher(this.#context))
        stacks.watch<WritDoc>('clerk', 'writs', this.#dispatchWatcher())
      } catch (error) {
        if (error instanceof WatchClosedError)
          throw new ClientWatchersError(published.watchersOfWrits, 0, published.plugins)
        throw error
      }
      this.#hasOwnWatchers = true
    }
    this.#check(published)
    this.#published = published
  }

  #check(published: PublishedClerk): void {
    const { plugins, watchersOfWrits } = published
    const builtIn = isWorker(published) ? 2 : 1
    const mine = this.#hasOwnWatchers ? builtIn : this.#options.stacks.watched('clerk', 'writs')
    if (mine !== watchersOfWrits && this.#options.differentWatchers === 'refuse')
      throw new ClientWatchersError(watchersOfWrits, mine, plugins)
    this.#published = published
  }

  #known(): ClerkRules {
    if (this.#rules === undefined) throw new GuildNotStartedError()
    return this.#rules
  }

  #dispatchWatcher(): ReturnType<typeof writWatcher> {
    const { stacks } = this.#options
    const clerk = this.#context
    const classification = ({ type, phase }: Pick<WritDoc, 'type' | 'phase'>) =>
      clerk.types.machine(type).state(phase).classification
    const dispatch = stacks.book<DispatchRow>('spider', 'dispatch')
    const context: DispatchContext = {
      writs: clerk.writs,
      dispatch,
      waits: stacks.book<WaitRow>('spider', 'waits'),
      gates: stacks.book<GateRow>('spider', 'gates'),
      deadlines: stacks.book<DeadlineRow>('spider', 'deadlines'),
      now: () => clerk.now(),
      clerk: {
        isTerminal: (writ) => classification(writ) === 'terminal',
        isInitial: (writ) => classification(writ) === 'initial',
        setWritStatus: (id, pluginId, value) => setStatus(clerk, id, pluginId, value),
        hasOpenChildren: (id) => hasOpenChildren(clerk, id),
        transition: async (id, to) => clerk.step(await clerk.need(id), to),
      },
      // Which types have a template is known where their engines are: a worker drops the entry of a writ that has none.
      mayHaveRig: () => 'unknown',
    }
    // To end a rig, or a writ with it, takes engines and the providers of their sessions, which only workers have: they find it in the queue.
    const watcher = writWatcher(context, {
      endRigOf: async ({ id, createdAt }) => {
        const row = await dispatch.get(id)
        if (row?.rigId === undefined) return
        // Due immediately, by any clock.
        await dispatch.put({ ...row, state: 'cancelling', isOpen: false, dueAt: createdAt })
      },
      completeParent: async (id) => void (await dispatch.patch(id, { state: 'ready' })),
    })
    return async (event) => {
      if (this.#published !== undefined && isWorker(this.#published)) await watcher(event)
    }
  }
}

import { systemClock } from '../core/clock.js'
import { Handle, type HandleServices } from './handle.js'
import { Orphans } from './orphans.js'
import type { Shared } from './shared.js'
import { stateOf } from './states.js'
import type { Submission } from './submitter.js'
import { type Ended, Waiters } from './waiters.js'
import type { WaitOptions, WorkState } from './work.js'

/** Handles, and who waits for what: results, groups, and groups that nobody waits for. */
export class Waiting implements HandleServices {
  readonly #s: Shared
  readonly #waiters: Waiters
  readonly #orphans: Orphans | undefined

  constructor(shared: Shared) {
    this.#s = shared
    const { o, ledger, ports, worker } = shared
    this.#waiters = new Waiters({
      ledger,
      clock: o.clock,
      inbox: worker.id,
      onError: (error) => shared.failed(error, 'queue'),
      holdsProcess: o.clock === systemClock && o.given.keepAlive !== false,
    })
    const hook = o.given.unhandledWorkGroup
    if (hook !== undefined) {
      this.#orphans = new Orphans({
        clock: o.clock,
        prefix: o.prefix,
        store: ports.store,
        states: (groupId) => this.#statesOf(groupId),
        hook,
        onError: (error) => shared.failed(error, 'commit'),
      })
    }
  }

  /** The handle of a submission. A failure that nobody looks at is reported, never an unhandled rejection. */
  handle(submission: Submission, accepted: () => void): Handle {
    const handle = new Handle(submission, this)
    submission.accepted.then(accepted, (error) => {
      if (!handle.isAwaited) this.#s.failed(error, 'queue')
    })
    return handle
  }

  itemEnded(id: string, ended: Ended): void {
    this.#waiters.itemEnded(id, ended)
  }

  /** A group closed, by a settlement of ours. `value` is its text, `decoded` what that stands for. */
  groupClosed(groupId: string, value: string | undefined, decoded: unknown, isWatched: boolean): void {
    if (!isWatched && !this.#waiters.isGroupAwaited(groupId)) this.#orphans?.closed(groupId, decoded)
    this.#waiters.groupClosed(groupId, value)
  }

  close(): void {
    this.#waiters.close()
  }

  async result(handle: Handle, options: WaitOptions | undefined): Promise<unknown> {
    const text = await this.#waited(handle, 'item', handle.id, options)
    return text === undefined ? undefined : this.#s.registry.codecOf(handle.type, this.#s.o.codec).parse(text)
  }

  async group(handle: Handle, options: WaitOptions | undefined): Promise<unknown> {
    const text = await this.#waited(handle, 'group', handle.groupId, options)
    return text === undefined ? undefined : this.#s.o.codec.parse(text)
  }

  /** A wait that begins before the item is sent travels with it and costs nothing more; a later one is registered. */
  async #waited(handle: Handle, kind: 'item' | 'group', id: string, options: WaitOptions | undefined) {
    this.#orphans?.awaited(handle.groupId)
    if (!handle.tellsOnSettle(this.#s.worker.id, this.#s.batches)) {
      await handle.accepted()
      return this.#waiters.wait(kind, id, false, options)
    }
    const waited = this.#waiters.wait(kind, id, true, options)
    handle.accepted().then(
      () => this.#waiters.accepted(kind, id),
      // What was never accepted will never settle.
      (error) => this.#waiters.reject(kind, id, error),
    )
    return waited
  }

  async #statesOf(groupId: string): Promise<readonly WorkState[]> {
    const { inspect } = this.#s.ledger
    if (inspect === undefined) return this.#s.known?.list(groupId) ?? []
    return (await inspect.list({ groupId, limit: 1_000 })).items.map(stateOf)
  }
}

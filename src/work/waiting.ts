import { BufferFullError } from '../ports/group-commit.js'
import type { Controls } from './controls/controls.js'
import { Handle, type HandleServices } from './handle.js'
import { Orphans } from './orphans.js'
import { lendingPlace } from './place.js'
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

  readonly controls: Controls
  #isFullTold = false
  #lastTold: unknown

  constructor(shared: Shared, controls: Controls) {
    this.#s = shared
    this.controls = controls
    const { o, ledger, ports, worker } = shared
    this.#waiters = new Waiters({
      ledger,
      clock: o.clock,
      inbox: worker.id,
      onError: (error) => shared.failed(error, 'queue'),
      holdsProcess: o.clock.isReal === true && o.given.keepAlive !== false,
      keep: o.keep,
      turns: shared.turns,
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

  /** The handle of a submission. A failure that no caller looks at is reported, never an unhandled rejection. */
  handle(submission: Submission, accepted: () => void): Handle {
    const handle = new Handle(submission, this)
    const { id, accepted: answer } = submission
    const { unanswered } = this.#s
    unanswered.add(id, answer)
    const onAccepted = () => {
      this.#answered(answer, id)
      accepted()
    }
    answer.then(onAccepted, (error) => {
      if (!handle.isAwaited) this.#failed(error, unanswered.has(answer))
      this.#answered(answer, id)
    })
    return handle
  }

  /** A stop or a close meanwhile waits for this, too. `count`: how many enqueues are still to be made. */
  waitFor(enqueues: Promise<unknown>, count: () => number): void {
    this.#s.unanswered.wait(enqueues, count)
    const answered = () => this.#answered(enqueues)
    enqueues.then(answered, answered)
  }

  #answered(answer: Promise<unknown>, id?: string): void {
    const { unanswered, lost } = this.#s
    unanswered.answered(answer, id)
    if (unanswered.isEmpty) lost.settled()
  }

  /** `isWaitedFor`: it was not given up by a stop, which has said so. */
  #failed(error: unknown, isWaitedFor: boolean): void {
    if (this.#s.o.given.onError === undefined) {
      if (isWaitedFor) this.#s.lost.add(error)
    } else if (!this.#isToldAlready(error)) this.#s.failed(error, 'queue')
  }

  /** A caller who does not await meets a full buffer a million times over: that is told once, until there is room again. */
  #isToldAlready(error: unknown): boolean {
    if (!(error instanceof BufferFullError)) return this.#isOfSameBatch(error)
    const wasTold = this.#isFullTold
    this.#isFullTold = true
    if (!wasTold)
      void Promise.all([this.#s.commits.whenRoom(), this.#s.heldRoom.whenRoom()]).then(() => {
        this.#isFullTold = false
      })
    return wasTold
  }

  /** Items that travelled together fail with one error. */
  #isOfSameBatch(error: unknown): boolean {
    const wasTold = error === this.#lastTold
    this.#lastTold = error
    return wasTold
  }

  itemEnded(id: string, ended: Ended): void {
    this.#waiters.itemEnded(id, ended)
  }

  /** A group closed, by a settlement of ours. `value` is its text, `decoded` what that stands for. */
  groupClosed(groupId: string, value: string | undefined, decoded: unknown, isWatched: boolean): void {
    if (!isWatched) this.#orphans?.closed(groupId, decoded)
    this.#waiters.groupClosed(groupId, value)
  }

  open(): void {
    this.#waiters.open()
  }

  close(): void {
    this.#waiters.close()
    this.#orphans?.close()
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
  #waited(handle: Handle, kind: 'item' | 'group', id: string, options: WaitOptions | undefined) {
    const { groupId } = handle
    this.#orphans?.awaited(groupId)
    const isTold = handle.tellsOnSettle(this.#s.worker.id, this.#s.batches)
    const { enlisted } = handle
    const what = { kind, id, groupId, item: handle.id, isTold, accepted: handle.accepted(), enlisted }
    return lendingPlace(this.#waiters.wait(what, options), handle.type)
  }

  async #statesOf(groupId: string): Promise<readonly WorkState[]> {
    const { inspect } = this.#s.ledger
    if (inspect === undefined) return this.#s.known?.list(groupId) ?? []
    return (await inspect.list({ groupId, limit: 1_000 })).items.map((view) => stateOf(view))
  }
}

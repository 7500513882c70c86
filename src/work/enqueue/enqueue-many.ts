import { functionOption, OptionTypeError } from '../../core/options.js'
import { peek } from '../../core/text/safe-read.js'
import type { MaybePromise } from '../../core/time/time.js'
import type { ManyOptions, ManyReceipts, Receipt, Work, WorkInstanceOptions } from '../define/work.js'
import { checkWork } from '../settle/result-tree.js'
import type { Handle } from '../wait/handles.js'
import type { Acceptance, AcceptanceListener } from './acceptance.js'

/** How many works are read from a stream, checked and sent together. */
const CHUNK = 1_000

/** What enqueues many works one by one. */
export interface ManySender {
  enqueue(work: Work, options: WorkInstanceOptions | undefined): Handle
  /** Undefined where there is room, otherwise what to await first. */
  whenRoom(): Promise<void> | undefined
  /** Rejects with the first of these whose input is not valid. */
  checkInputs(works: readonly Work[]): MaybePromise<void>
  /** `stop` waits for these. `count`: how many enqueues are still to be made. */
  waitFor(enqueues: Promise<unknown>, count: () => number): void
  /** How many works may be unanswered at the same time. */
  readonly mostUnanswered: number
}

/** A list gives its handles. A stream gives counts only: the handles of a million works would not fit in memory. */
export function enqueueMany(
  sender: ManySender,
  given: Iterable<Work> | AsyncIterable<Work>,
  options: ManyOptions | undefined,
): Promise<readonly Handle[] | ManyReceipts> {
  const { onProgress, ...others } = options ?? {}
  // Most have none: options are checked for each item.
  const each = Object.keys(others).length === 0 ? undefined : others
  if (onProgress !== undefined) functionOption('enqueueMany.onProgress', onProgress)
  const progress = new Progress(onProgress)
  if (Array.isArray(given)) return enqueueList(sender, given as readonly Work[], each, progress)
  if (!isStream(given)) throw new OptionTypeError('enqueueMany(works)', 'a list or an iterable of works', given)
  return enqueueStream(sender, given, each, progress)
}

function enqueueList(
  sender: ManySender,
  given: readonly Work[],
  each: WorkInstanceOptions | undefined,
  progress: Progress,
): Promise<readonly Handle[]> {
  // A copy: it is read several times, and the caller may change the list meanwhile.
  const works = [...given]
  const handles: Handle[] = []
  const enqueued = (async () => {
    const checking = check(sender, works)
    // In a synchronous transaction everything has to be written before anything asynchronous happens.
    if (checking !== undefined) await checking
    await send(sender, works, each, progress, (handle) => handles.push(handle))
    // A handle is thenable: returned bare from an async function it would be awaited. In a list it is not.
    return handles
  })()
  sender.waitFor(enqueued, () => works.length - handles.length)
  return enqueued
}

function enqueueStream(
  sender: ManySender,
  given: Iterable<Work> | AsyncIterable<Work>,
  each: WorkInstanceOptions | undefined,
  progress: Progress,
): Promise<ManyReceipts> {
  let chunk: Work[] = []
  const sent = { count: 0 }
  const flush = async () => {
    await check(sender, chunk)
    await send(sender, chunk, each, progress, () => {
      sent.count += 1
    })
    chunk = []
    sent.count = 0
  }
  const enqueued = (async () => {
    for await (const work of given) {
      chunk.push(work)
      if (chunk.length >= CHUNK) await flush()
    }
    if (chunk.length > 0) await flush()
    return progress.receipts
  })()
  // What is still to be read is not known.
  sender.waitFor(enqueued, () => chunk.length - sent.count)
  return enqueued
}

/** All or none of a chunk: anything that is not work, or has a bad input, is found before the first is sent. */
function check(sender: ManySender, works: readonly Work[]): MaybePromise<void> {
  for (const work of works) checkWork(work)
  return works.length > 1 ? sender.checkInputs(works) : undefined
}

async function send(
  sender: ManySender,
  works: readonly Work[],
  each: WorkInstanceOptions | undefined,
  progress: Progress,
  onSent: (handle: Handle) => void,
): Promise<void> {
  const answers = new Answers()
  const answered = async () => progress.report(await answers.all())
  for (const work of works) {
    // What is written in a transaction of the caller does not pass through our buffer.
    const room = each?.tx === undefined ? sender.whenRoom() : undefined
    const isFull = room !== undefined || (each?.tx === undefined && answers.open >= sender.mostUnanswered)
    if (isFull) {
      await room
      await answered()
    }
    const handle = sender.enqueue(work, each)
    onSent(handle)
    answers.wait(handle.acceptance)
  }
  await answered()
}

/** Counts what became of a row of enqueues: one promise for all of them. */
class Answers implements AcceptanceListener {
  open = 0
  #receipts = { created: 0, coalesced: 0 }
  #failure: { readonly error: unknown } | undefined
  #settle: (() => void) | undefined

  wait(acceptance: Acceptance): void {
    this.open += 1
    acceptance.listen(this)
  }

  accepted(_: Acceptance, { kind }: Receipt): void {
    this.#receipts[kind] += 1
    this.#answered()
  }

  failed(_: Acceptance, error: unknown): void {
    this.#failure ??= { error }
    this.#answered()
  }

  /** The receipts since the last call, once everything is answered; rejects with the first failure. */
  async all(): Promise<ManyReceipts> {
    if (this.open > 0 && this.#failure === undefined) await new Promise<void>((resolve) => (this.#settle = resolve))
    if (this.#failure !== undefined) throw this.#failure.error
    const receipts = this.#receipts
    this.#receipts = { created: 0, coalesced: 0 }
    return receipts
  }

  #answered(): void {
    this.open -= 1
    if (this.open === 0 || this.#failure !== undefined) this.#settle?.()
  }
}

/** Counts what was accepted, and reports it to the caller. */
class Progress {
  readonly #onProgress: ManyOptions['onProgress']
  receipts: ManyReceipts = { created: 0, coalesced: 0 }

  constructor(onProgress: ManyOptions['onProgress']) {
    this.#onProgress = onProgress
  }

  report({ created, coalesced }: ManyReceipts): void {
    this.receipts = { created: this.receipts.created + created, coalesced: this.receipts.coalesced + coalesced }
    this.#onProgress?.(this.receipts)
  }
}

function isStream(given: unknown): given is Iterable<Work> | AsyncIterable<Work> {
  if (typeof given !== 'object' || given === null) return false
  return [Symbol.iterator, Symbol.asyncIterator].some((name) => typeof peek(given, name) === 'function')
}

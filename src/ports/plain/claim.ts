import { readEnvelope } from '../envelope.js'
import type { Claimed } from '../item.js'
import type { ClaimAsk, ClaimReply } from '../ledger.js'
import { type Dealt, deal, drop, giveBack, giveBackPaused, holdOn } from './deal.js'
import { type Delivery, handOut } from './delivery.js'
import type { Desk } from './desk.js'
import { readFacts } from './facts.js'
import { type Arrival, Intake } from './intake.js'
import { judge } from './judge.js'
import { Pauses } from './pauses.js'

/** What became of a delivery: handed out, or dealt with, which may take longer than the claim waits. */
type Routed = { readonly item: Claimed } | { readonly dealing: Promise<Dealt> }

/** Pulls from the queues and sorts what came. Most of it is handed out; the rest is dealt with here. */
export class Claims {
  readonly #desk: Desk
  readonly #intake: Intake
  readonly #pauses: Pauses
  /** What was dealt with since the last reply, or before it without its claim having waited. */
  #dealt: Dealt[] = []
  /** The types of the runs that were found cut off since the last reply. */
  #crashed: string[] = []

  constructor(desk: Desk) {
    this.#desk = desk
    this.#intake = new Intake(desk)
    this.#pauses = new Pauses(desk)
  }

  async claim(ask: ClaimAsk): Promise<ClaimReply> {
    // What falls due while the queues are being asked may have been missed by them: it still counts as due next.
    const askedAt = this.#desk.clock.now()
    const looked = this.#pauses.look([...new Set(ask.from.map(({ queue }) => queue))])
    // A queue known to be paused is looked at before it is popped; the others meanwhile.
    if (ask.from.some(({ queue }) => this.#pauses.isQueuePaused(queue))) await looked
    const from = ask.from.filter(({ queue }) => !this.#pauses.isQueuePaused(queue))
    const [pulled] = await Promise.all([this.#intake.pull(from, ask.leaseMs), looked])
    const failed = [...pulled.failed]
    const types = new Map<string, Promise<boolean>>()
    const routed = await Promise.all(
      pulled.arrivals.map(async (arrival): Promise<Routed> => {
        try {
          return await this.#route(arrival, ask, types)
        } catch (error) {
          failed.push({ queue: arrival.queue.name, error })
          return { dealing: giveBack(this.#desk, arrival, this.#desk.options.putBackMs) }
        }
      }),
    )
    const items = routed.flatMap((one) => ('item' in one ? [one.item] : []))
    await this.#settled(routed.flatMap((one) => ('dealing' in one ? [one.dealing] : [])))
    const at = this.#desk.clock.now()
    const nextDueAt = this.#desk.bell.nextDueAt(
      ask.from.map(({ queue }) => queue),
      askedAt,
    )
    return {
      ...this.#told(),
      ...some({ failed }),
      ...(nextDueAt === undefined ? {} : { nextDueAt }),
      items,
      more: pulled.isFull && items.length > 0,
      at,
    }
  }

  async #route(arrival: Arrival, ask: ClaimAsk, types: Map<string, Promise<boolean>>): Promise<Routed> {
    const desk = this.#desk
    const envelope = readEnvelope(arrival.pulled.body)
    if (envelope === undefined) return { dealing: drop(desk, arrival) }
    if (this.#pauses.isQueuePaused(arrival.queue.name)) return { dealing: giveBackPaused(desk, arrival) }
    const delivery: Delivery = { ...arrival, envelope, worker: ask.worker, leaseMs: ask.leaseMs }
    const isTypePaused = types.get(envelope.type) ?? this.#pauses.isTypePaused(envelope.type)
    types.set(envelope.type, isTypePaused)
    const facts = await readFacts(desk, envelope, isTypePaused)
    const ruling = judge(facts)
    if (ruling.kind !== 'run') return { dealing: deal(desk, delivery, facts, ruling) }
    const handed = await handOut(desk, delivery, facts.state, ruling, (type) => this.#crashed.push(type))
    if (!('not' in handed)) return { item: handed }
    if (handed.not === 'gate') return { dealing: holdOn(desk, delivery, handed.state) }
    return { dealing: giveBack(desk, delivery, desk.options.putBackMs) }
  }

  /** Waits for what is being dealt with, but not for long: a queue that does not answer must not hold up the others. */
  async #settled(dealings: readonly Promise<Dealt>[]): Promise<void> {
    if (dealings.length === 0) return
    const { clock, options } = this.#desk
    const all = Promise.all(dealings.map(async (dealing) => this.#dealt.push(await dealing)))
    let cancel: () => void = () => undefined
    const slow = new Promise<void>((resolve) => {
      cancel = clock.after(options.slowMs, resolve)
    })
    await Promise.race([all, slow])
    cancel()
  }

  #told(): Pick<ClaimReply, 'unreadable' | 'rescheduled' | 'closed' | 'crashed'> {
    const dealt = this.#dealt.splice(0)
    return some({
      crashed: this.#crashed.splice(0),
      unreadable: dealt.flatMap(({ unreadable }) => unreadable ?? []),
      rescheduled: dealt.flatMap(({ rescheduled }) => rescheduled ?? []),
      closed: dealt.flatMap(({ closed }) => closed ?? []),
    })
  }
}

/** The lists that are not empty. */
function some<T extends Readonly<Record<string, readonly unknown[]>>>(lists: T): Partial<T> {
  // The entries are those of T; only empty ones are left out.
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) as Partial<T>
}

import type { ClaimedItem } from '../../ports/item.js'
import type { Delivery } from '../../source/loop/delivery.js'
import type { AnyWorkType, Work, WorkContext, WorkResult, WorkState } from '../define/work.js'
import { listed, ResultNode } from '../settle/result-tree.js'

/** What the engine does for a handler while it runs. */
export interface RunServices {
  states(ids: readonly string[]): Promise<readonly (WorkState | undefined)[]>
  claim(key: string): Promise<boolean>
  results(item: ClaimedItem, of: readonly (AnyWorkType | Work)[] | undefined): Promise<readonly unknown[]>
  progress(delivery: Delivery<ClaimedItem>, value: unknown): void
}

/**
 * The context of one run, and the instructions that its handler made. Functions are made when they are read: a handler may
 * destructure the context, and pays only for the functions it uses.
 */
export class RunContext implements WorkContext {
  readonly id: string
  readonly groupId: string
  readonly attempt: number
  readonly #delivery: Delivery<ClaimedItem>
  readonly #services: RunServices
  /** Every instruction: what the handler returns must reach all of them. */
  readonly made: ResultNode[] = []

  constructor(delivery: Delivery<ClaimedItem>, services: RunServices) {
    const { envelope } = delivery.item
    this.id = envelope.id
    this.groupId = envelope.groupId
    this.attempt = envelope.attempt
    this.#delivery = delivery
    this.#services = services
  }

  // `exactOptionalPropertyTypes` knows no optional getter: where the envelope has none, these are undefined.
  get parent(): string {
    return this.#delivery.item.envelope.parent as string
  }

  get dependents(): readonly string[] {
    return this.#delivery.item.envelope.dependents as readonly string[]
  }

  get deadline(): number {
    return this.#delivery.item.envelope.deadline as number
  }

  get deliveries(): number {
    return 1 + this.#delivery.item.lapses
  }

  get fence(): number {
    return this.#delivery.item.lease.fence
  }

  get signal(): AbortSignal {
    return this.#delivery.signal
  }

  get states(): WorkContext['states'] {
    return this.#services.states
  }

  get results(): WorkContext['results'] {
    // Typed by what it is asked for.
    return ((of?: readonly (AnyWorkType | Work)[]) =>
      this.#services.results(this.#delivery.item, of)) as WorkContext['results']
  }

  get claim(): WorkContext['claim'] {
    return this.#services.claim
  }

  get progress(): WorkContext['progress'] {
    return (value) => this.#services.progress(this.#delivery, value)
  }

  get result(): WorkContext['result'] {
    return (value, options) => {
      // Awaited once the handler has returned it. If it is not returned, its rejection is ignored.
      if (value instanceof Promise) value.catch(() => undefined)
      return this.#make(new ResultNode('result', value, options as ResultNode['options']))
    }
  }

  get queue(): WorkContext['queue'] {
    return (items, itemOptions) => this.#make(new ResultNode('queue', undefined, undefined, listed(items), itemOptions))
  }

  get void(): WorkContext['void'] {
    return () => this.#make(new ResultNode('void'))
  }

  /** The types of a `WorkResult` exist only for the compiler, so a node can be any of them. */
  #make<S, G, B extends readonly unknown[]>(node: ResultNode): WorkResult<S, G, B> {
    this.made.push(node)
    return node as unknown as WorkResult<S, G, B>
  }
}

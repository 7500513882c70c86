import type { Ms } from '../../core/time/time.js'
import { type ConsumerInfo, isMissing, type JsApi } from './js-api.js'

export interface JsConsumerOptions {
  readonly api: JsApi
  readonly stream: string
  readonly name: string
  readonly leaseMs: Ms
  readonly maxUnsettled: number
  readonly filter: string | undefined
  readonly isFromStart: boolean
}

/** Where a consumer begins. */
export type StartAt =
  | { readonly deliver_policy: 'all' | 'new' }
  | { readonly deliver_policy: 'by_start_sequence'; readonly opt_start_seq: number }
  | { readonly deliver_policy: 'by_start_time'; readonly opt_start_time: string }

const NS_PER_MS = 1_000_000

/** A durable pull consumer on the server: made when it is first needed, and made anew when it was lost. */
export class JsConsumer {
  readonly #o: JsConsumerOptions
  #making: Promise<void> | undefined
  /** How often it was made anew by this process: what was delivered before is settled no more. */
  epoch = 0

  constructor(options: JsConsumerOptions) {
    this.#o = options
  }

  get stream(): string {
    return this.#o.stream
  }

  get name(): string {
    return this.#o.name
  }

  /** Resolves when it is there. */
  ready(): Promise<void> {
    this.#making ??= this.#make().catch((error: unknown) => {
      this.#making = undefined
      throw error
    })
    return this.#making
  }

  /** It was removed, or the server has lost it. */
  lost(): void {
    this.#making = undefined
  }

  info(): Promise<ConsumerInfo> {
    return this.#o.api.consumer(this.stream, this.name)
  }

  /** Makes it anew from there. The server does not let a consumer be moved. */
  async restart(at: StartAt): Promise<void> {
    await this.ready()
    this.epoch += 1
    const making = this.#restart(at)
    this.#making = making
    await making
  }

  async #restart(at: StartAt): Promise<void> {
    try {
      await this.#o.api.ask(`CONSUMER.DELETE.${this.stream}.${this.name}`)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    await this.#create(at)
  }

  async #make(): Promise<void> {
    const { isFromStart, leaseMs, maxUnsettled, api } = this.#o
    let found: ConsumerInfo
    try {
      found = await this.info()
    } catch (error) {
      if (!isMissing(error)) throw error
      // A stream that is not there says so, too.
      await api.stream(this.stream)
      await this.#create({ deliver_policy: isFromStart ? 'all' : 'new' })
      return
    }
    const { config } = found
    const wanted = { ack_wait: leaseMs * NS_PER_MS, max_deliver: -1, max_ack_pending: maxUnsettled }
    const differs = Object.entries(wanted).some(([name, value]) => config[name] !== value)
    if (differs) await this.#send({ ...config, ...wanted })
  }

  #create(at: StartAt): Promise<unknown> {
    const { name, leaseMs, maxUnsettled, filter } = this.#o
    return this.#send({
      durable_name: name,
      ack_policy: 'explicit',
      replay_policy: 'instant',
      ack_wait: leaseMs * NS_PER_MS,
      // How often is the hopper's decision: the server would drop a message without a trace.
      max_deliver: -1,
      max_ack_pending: maxUnsettled,
      ...(filter === undefined ? {} : { filter_subject: filter }),
      ...at,
    })
  }

  #send(config: object): Promise<unknown> {
    const { api, stream, name } = this.#o
    return api.ask(`CONSUMER.DURABLE.CREATE.${stream}.${name}`, { stream_name: stream, config })
  }
}

import type { Connection } from './connection.js'

/** The numbers of a queue, and of a queue and type. */
export interface QueueType {
  readonly queue: number
  readonly queueType: number
}

/** The names that one number stands for. */
interface QueueTypeName {
  readonly queue: string
  readonly type: string
}

/**
 * The numbers that replace names in rows. They never change, so each is read once. They are read on a separate connection: in
 * a user's transaction a number could be rolled back and would stay here, and such transactions may hold every connection of
 * a pool.
 */
export class Names {
  readonly #connection: Connection
  readonly #queues = new Map<string, number>()
  readonly #numbers = new Map<string, Map<string, QueueType>>()
  readonly #names = new Map<number, QueueTypeName>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async queueNo(name: string): Promise<number> {
    return this.#queues.get(name) ?? this.#ask(name)
  }

  /** Learns the numbers of all of these. */
  async learn(wanted: Iterable<QueueTypeName>): Promise<void> {
    const unknown = new Map<string, QueueTypeName>()
    for (const name of wanted) {
      if (this.numbers(name.queue, name.type) === undefined) unknown.set(JSON.stringify([name.queue, name.type]), name)
    }
    for (const { queue, type } of unknown.values()) await this.#ask(queue, type)
  }

  numbers(queue: string, type: string): QueueType | undefined {
    return this.#numbers.get(queue)?.get(type)
  }

  /** The name of a number. Reads all of them when another process made this one. */
  async nameOf(queueType: number): Promise<QueueTypeName> {
    const known = this.#names.get(queueType)
    if (known !== undefined) return known
    const { driver, sql } = await this.#connection.ready()
    const rows = await driver.query<[number, number, string, string]>(
      sql(
        'queue_types',
        'select h.no, h.queue, q.name, h.type from {schema}.queue_type h join {schema}.queue q on q.no = h.queue',
      ),
    )
    for (const [no, queueNo, queue, type] of rows) this.#keep(queue, type, queueNo, no)
    const found = this.#names.get(queueType)
    if (found === undefined) throw new Error(`no queue and type have the number ${queueType}`)
    return found
  }

  knownName(queueType: number): QueueTypeName | undefined {
    return this.#names.get(queueType)
  }

  async #ask(queue: string, type?: string): Promise<number> {
    const { driver, sql } = await this.#connection.ready()
    const [row] = await driver.apart.query<[[number, number | null]]>(
      sql('queue_type_of', 'select {schema}.queue_type_of($1, $2)', [queue, type]),
    )
    const [queueNo, queueType] = row![0]
    this.#queues.set(queue, queueNo)
    if (type !== undefined && queueType !== null) this.#keep(queue, type, queueNo, queueType)
    return queueNo
  }

  #keep(queue: string, type: string, queueNo: number, queueType: number): void {
    let types = this.#numbers.get(queue)
    if (types === undefined) {
      types = new Map()
      this.#numbers.set(queue, types)
    }
    this.#queues.set(queue, queueNo)
    types.set(type, { queue: queueNo, queueType })
    this.#names.set(queueType, { queue, type })
  }
}

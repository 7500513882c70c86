import type { Connection } from './connection.js'

/** The numbers of a queue, and of a queue and type. */
export interface Home {
  readonly queue: number
  readonly home: number
}

/** A home by its number. */
interface Place {
  readonly queue: string
  readonly type: string
}

/**
 * The numbers that stand for names in rows. They never change, so each is asked for once; on a connection apart, not in the
 * transaction of a user, because a number that were rolled back would stay here, and not on one of a pool whose connections
 * such transactions may all hold.
 */
export class Names {
  readonly #connection: Connection
  readonly #queues = new Map<string, number>()
  readonly #homes = new Map<string, Map<string, Home>>()
  readonly #places = new Map<number, Place>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async queueNo(name: string): Promise<number> {
    return this.#queues.get(name) ?? this.#ask(name)
  }

  /** Learns the numbers of all of these at once. */
  async learn(wanted: Iterable<Place>): Promise<void> {
    const unknown = new Map<string, Place>()
    for (const place of wanted) {
      if (this.home(place.queue, place.type) === undefined)
        unknown.set(JSON.stringify([place.queue, place.type]), place)
    }
    for (const { queue, type } of unknown.values()) await this.#ask(queue, type)
  }

  home(queue: string, type: string): Home | undefined {
    return this.#homes.get(queue)?.get(type)
  }

  /** What a number stands for. Asks for all of them when it meets one that another process made. */
  async place(home: number): Promise<Place> {
    const known = this.#places.get(home)
    if (known !== undefined) return known
    const { driver, sql } = await this.#connection.ready()
    const rows = await driver.query<[number, number, string, string]>(
      sql('homes', 'select h.no, h.queue, q.name, h.type from {schema}.home h join {schema}.queue q on q.no = h.queue'),
    )
    for (const [no, queueNo, queue, type] of rows) this.#keep(queue, type, queueNo, no)
    const found = this.#places.get(home)
    if (found === undefined) throw new Error(`no queue and type have the number ${home}`)
    return found
  }

  knownPlace(home: number): Place | undefined {
    return this.#places.get(home)
  }

  async #ask(queue: string, type?: string): Promise<number> {
    const { driver, sql } = await this.#connection.ready()
    const [row] = await driver.apart.query<[[number, number | null]]>(
      sql('home_of', 'select {schema}.home_of($1, $2)', [queue, type]),
    )
    const [queueNo, home] = row![0]
    this.#queues.set(queue, queueNo)
    if (type !== undefined && home !== null) this.#keep(queue, type, queueNo, home)
    return queueNo
  }

  #keep(queue: string, type: string, queueNo: number, home: number): void {
    let types = this.#homes.get(queue)
    if (types === undefined) {
      types = new Map()
      this.#homes.set(queue, types)
    }
    this.#queues.set(queue, queueNo)
    types.set(type, { queue: queueNo, home })
    this.#places.set(home, { queue, type })
  }
}

/** Where a contender keeps its work: a file, the address of a server, or nothing for memory. */
export interface Place {
  readonly kind: PlaceKind
  readonly address: string
}

export type PlaceKind = 'memory' | 'sqlite' | 'redis' | 'postgres'

/** What each item carries, the same for every contender: 110 bytes as JSON unless a bench asks for more. */
export interface Payload {
  /** Its number, by which a lost item or a second run is found. */
  readonly n: number
  /** When it was added, in microseconds of the machine's monotonic clock. Only where latency is measured. */
  readonly at?: number
  readonly pad: string
}

export interface OpenOptions {
  /** `latency`: settings that start a single item soonest, where a contender has to choose. */
  readonly isForLatency: boolean
  /** How many types of work the items are spread over; more than one only for ours. */
  readonly types: number
  /** What goes wrong where no caller sees it. A figure from such a run is worth nothing. */
  onError(error: unknown): void
}

/** How many items there are. Peers that keep no outcome leave out `completed`. */
export interface Counts {
  readonly pending: number
  readonly completed?: number
}

/** One queue library behind the calls that the benches need, each with its fastest documented settings; ours with the defaults. */
export interface Contender {
  /** Resolves when the item is as durable as the library makes it. */
  add(payload: Payload): Promise<unknown>
  addMany(payloads: readonly Payload[]): Promise<unknown>
  /** Starts a worker, which is ready when this resolves. */
  work(handle: (payload: Payload) => void): Promise<void>
  /**
   * Opens so many groups of so many items each, waits for the end of every group, and says how many items ran. Only ours has groups.
   */
  groups?(groups: number, itemsOfEach: number): Promise<number>
  counts(): Promise<Counts>
  /** Ends the worker, so that another can be started. Only ours is asked. */
  rest?(): Promise<void>
  /** Ends the worker, if there is one, and every connection. */
  close(): Promise<void>
}

export type OpenContender = (place: Place, options: OpenOptions) => Promise<Contender>

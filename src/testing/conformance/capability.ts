/**
 * What a backend may have beyond the obligations of the three ports. A clause that needs one of these is skipped, visibly,
 * for a backend that says it is `without` it.
 */
export const CAPABILITIES = Object.freeze({
  'exact time':
    'the test moves the time of the backend; without it clauses run in real time and boundaries are not met',
  'arrival order': 'a queue hands out bodies of one priority in the order of due time and arrival',
  'exact dedupe': 'a push with a `dedupeKey` that is in the queue is always a no-op',
  'free lease length': 'each `pop` and `heartbeat` may choose its own visibility',
  priority: 'a queue hands out the highest priority first',
  size: 'Queue.size',
  deadLetter: 'Queue.deadLetter',
  'lease report': '`Queue.heartbeat` answers false for a lost lease',
  pushMany: 'Queue.pushMany',
  ackMany: 'Queue.ackMany',
  heartbeatMany: 'Queue.heartbeatMany',
  starts: 'Queue.start: messages have ids and notes, and deliveries that began to run are counted',
  'dead letter list': 'Queue.deadLetters',
  delete: 'Store.delete',
  increment: 'Store.increment',
  incrementOnce: 'Store.incrementOnce',
  compareAndSet: 'Store.compareAndSet',
  getMany: 'Store.getMany',
  setMany: 'Store.setMany',
  'named queues': 'Backend.named: further queues that share one ledger',
  'native ledger': 'the backend keeps its own ledger, and its commit is atomic',
  'counts once': 'a repeated or resumed step counts once, also after a crash; over plain ports, `Store.incrementOnce`',
  'size limit': 'the ledger has a finite `limits.maxItemBytes`',
  holds: 'a paused item is kept in its place and is ready the moment it is resumed',
  lapses: 'the ledger counts expired leases apart from releases, also for items that had not begun to run',
  rooms: 'a claim takes only what its `rooms` have place for; a plain queue delivers anything',
  'due times': 'a claim reports when the next item falls due',
  'own inboxes': 'an inbox receives only what concerns it; without this, every inbox receives every end',
  'born leased': 'an item may be enqueued already leased, in the same atomic step',
  'foreign bodies': 'another program can push a body to the queue, past the ledger',
  'redrive and delete': 'items that have ended can be opened again, and any item can be deleted',
  inspect: 'Ledger.inspect: lists, counts and history for operators',
  'crash points': 'the suite can stop a ledger between any two calls to its ports',
} as const)

/** A power that a backend may lack, and then says so in `without`. */
export type Capability = keyof typeof CAPABILITIES

export const isCapability = (word: string): word is Capability => Object.hasOwn(CAPABILITIES, word)

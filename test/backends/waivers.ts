/** What each conformance suite is let off, by file and suite. `...name` stands for a list of `SHARED`. */
export const WAIVERS: Readonly<Record<string, readonly string[]>> = {
  'backends/memory/conformance.slow.test.ts: memory (plain ports with every capability)': [
    '...WEAKER_OVER_PLAIN_PORTS',
  ],
  'backends/memory/conformance.slow.test.ts: memory (minimal ports)': [
    '...WEAKER_OVER_PLAIN_PORTS',
    'counts once',
    'named queues',
    'increment',
  ],
  // Only of the ledger over its plain ports: it is stopped between any two calls over the ports in memory, once for all.
  'backends/postgres/conformance.server.test.ts: postgres': ['counts once', 'crash points'],
  'backends/redis/cluster.server.test.ts: redis cluster (native)': ['crash points'],
  'backends/sqlite/conformance.slow.test.ts: sqlite (two connections)': ['crash points'],
  'backends/plain/conformance-later.slow.test.ts: plain ports with every optional power, that answer later': [
    '...without',
    '...waived',
  ],
  'backends/plain/conformance-later.slow.test.ts: plain ports with the documented members, that answer later': [
    '...without',
    '...inTwoSteps',
  ],
  'backends/plain/conformance.slow.test.ts: plain ports with every optional power': ['...without', '...waived'],
  'backends/plain/conformance.slow.test.ts: plain ports with the documented members': ['...without', '...inTwoSteps'],
  'backends/plain/conformance.slow.test.ts: plain ports with the bare obligations': [
    '...without',
    'exact dedupe',
    'deadLetter',
    '...inTwoSteps',
    'ledger: a group that several processes end closes once',
  ],
  'testing/conformance/model.test.ts: the model': ['foreign bodies', 'crash points'],
  'testing/inlet/conformance.test.ts: memory': [
    'batched',
    'consumerGroups',
    'orderedDelivery',
    'pausable',
    'partitionOrdered',
    'sharedDurable',
    'starter',
    'transactional',
  ],
  'testing/inlet/conformance.test.ts: memory with everything': [
    'partitionOrdered',
    'sharedDurable',
    'starter',
    'transactional',
  ],
  'testing/inlet/conformance.test.ts: memory that only records': ['redelivery', 'batched', 'leaseExtender', 'starter'],
  'testing/inlet/conformance.test.ts: the memory queue': ['seekable'],
  'testing/inlet/conformance.test.ts: a minimal queue': ['releaser', 'seekable', 'lagReporter', 'starter', 'identity'],
}

/** What several suites are let off together. */
export const SHARED: Readonly<Record<string, readonly string[]>> = {
  WEAKER_OVER_PLAIN_PORTS: [
    'native ledger',
    'size limit',
    'holds',
    'lapses',
    'rooms',
    'due times',
    'born leased',
    'own inboxes',
    'redrive and delete',
    'inspect',
  ],
  without: ['native ledger', 'lapses', 'rooms', 'inspect', 'born leased', 'holds', 'own inboxes', 'size limit'],
  waived: [
    'ledger: a redriven item is pending again, from its first attempt',
    'ledger: a redriven item opens its group again',
  ],
  inTwoSteps: [
    'ledger: a redriven item is pending again, from its first attempt',
    'ledger: a redriven item opens its group again',
    'ledger: one id enqueued by two processes concurrently is one item',
    'ledger: a crash during an enqueue loses and doubles nothing',
    'ledger: a crash during a fan-out loses and doubles nothing',
    'ledger: a crash while a gate is freed loses and doubles nothing',
    'ledger: a crash during a dead-lettering loses and doubles nothing',
  ],
}

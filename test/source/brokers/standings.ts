import type { InletSuite } from 'millrace/testing'

/** What an inlet has not and cannot keep: its suite is held against it, and the table of the guide is made from it. */
export type Standing = Required<Pick<InletSuite, 'name' | 'without' | 'waived'>>

const oneNumber =
  'the position of a group is one number: what was done behind an open message comes again at the next member'

export const STANDINGS = {
  redis: {
    name: 'Redis Streams',
    without: ['consumerGroups', 'orderedDelivery', 'partitionOrdered', 'pausable', 'transactional'],
    waived: {},
  },
  nats: {
    name: 'NATS JetStream',
    without: [
      ...(['consumerGroups', 'orderedDelivery', 'partitionOrdered', 'pausable', 'releaser'] as const),
      ...(['starter', 'transactional'] as const),
    ],
    waived: {},
  },
  kafka: {
    name: 'Kafka (contract)',
    without: [
      ...(['consumerGroups', 'leaseExtender', 'orderedDelivery', 'pausable', 'releaser'] as const),
      ...(['sharedDurable', 'starter', 'transactional'] as const),
    ],
    waived: {
      'inlet: loses nothing across a gap of naks': oneNumber,
      'inlet: names its messages': oneNumber,
    },
  },
  sqs: {
    name: 'SQS (contract)',
    without: [
      ...(['consumerGroups', 'orderedDelivery', 'partitionOrdered', 'pausable', 'releaser'] as const),
      ...(['seekable', 'sharedDurable', 'starter', 'transactional'] as const),
    ],
    waived: {
      'inlet: delivers values as they were published, in order':
        'a standard queue promises no order, and a body is text without control characters',
    },
  },
} as const satisfies Record<string, Standing>

/** What a capability is called in the guide. */
const WORDS = {
  leaseExtender: 'leases, with heartbeats',
  starter: 'only deliveries that began to run count',
  releaser: 'gives back without counting',
  nakSupport: 'delayed naks',
  identity: 'names its messages, for `idempotency` and `pipe`',
  seekable: 'seek',
  lagReporter: 'lag',
  batched: 'fetches batches',
  sharedDurable: 'processes share a stream',
  partitionOrdered: 'order within a partition',
  transactional: 'transactions',
} as const

/** The table of the guide: what each broker has, and which clauses of the suite are waived, with their reasons. */
export function brokerTable(): string {
  const brokers: readonly Standing[] = Object.values(STANDINGS)
  const rows = Object.entries(WORDS).map(([capability, words]) => {
    const cells = brokers.map(({ without }) => ((without as readonly string[]).includes(capability) ? 'no' : 'yes'))
    return `| ${[words, ...cells].join(' | ')} |`
  })
  const waivers = brokers.flatMap(({ name, waived }) =>
    Object.entries(waived).map(([clause, reason]) => `- ${name}, "${clause.replace('inlet: ', '')}": ${reason}.`),
  )
  return [
    `| | ${brokers.map(({ name }) => name).join(' | ')} |`,
    `| --- |${brokers.map(() => ' --- |').join('')}`,
    ...rows,
    '',
    'Clauses of the suite that are waived:',
    '',
    ...waivers,
  ].join('\n')
}

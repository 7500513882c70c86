import { connect } from '@nats-io/transport-node'
import { afterAll, describe, it } from 'vitest'
import { JetStreamInlet } from '../../../src/source/nats/index.js'
import { describeInlet } from '../../../src/testing/inlet-conformance.js'
import { startNats } from '../../servers/index.js'
import { STANDINGS } from '../brokers/standings.js'

const server = await startNats()
const producer = await connect({ servers: server.url })
afterAll(async () => {
  await producer.close()
  await server.stop()
})

let opened = 0

describeInlet({
  ...STANDINGS.nats,
  // Most of a clause is waiting, and each has a stream of its own: several wait together.
  test: { describe, it: it.concurrent },
  // Leases and delays live by the server's time.
  realTime: true,
  // A step of a wait is a quiet moment and a pause: together they must stay well within a lease.
  quietMs: 5,
  open: async ({ leaseMs }) => {
    opened += 1
    const stream = `CLAUSE_${opened}`
    const subjects = [`clause.${opened}`]
    await producer.request(
      `$JS.API.STREAM.CREATE.${stream}`,
      JSON.stringify({ name: stream, subjects, storage: 'memory' }),
    )
    return {
      inlet: new JetStreamInlet({ servers: server.url, stream, durable: 'suite', leaseMs, idlePollMs: 200 }),
      config: { topics: [stream] },
      publish: async (...values) => {
        for (const value of values) await producer.request(subjects[0]!, value)
      },
    }
  },
})

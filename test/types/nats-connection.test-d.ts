import { connect } from '@nats-io/transport-node'
import { JetStreamInlet, JetStreamOutlet } from 'millrace/source/nats'

// A connection of the client is taken as it is, without a cast. Nothing is connected to: this file is only compiled.
export const inlets = async () => {
  const connection = await connect({ servers: 'nats://127.0.0.1:4222' })
  return [
    new JetStreamInlet({ connection, stream: 'ORDERS', durable: 'shipping' }),
    new JetStreamOutlet({ connection, subject: 'receipts' }),
  ]
}

/** The door of NATS JetStream: an inlet and an outlet for `millrace/source`. */

export type { NatsAddress, NatsConnectionLike, NatsHeadersLike, NatsMessageLike } from '../../drivers/nats/index.js'
export { StreamFetchError } from '../inlets/broker/stream-fetch-error.js'
export type { StreamExplanation, StreamLetter, StreamLetters } from '../inlets/broker/stream-letters.js'
export { JetStreamInlet, type JetStreamInletOptions } from './jetstream-inlet.js'
export { JetStreamOutlet, type JetStreamOutletOptions } from './jetstream-outlet.js'
export { JetStreamRefusedError, NatsDisconnectedError } from './js-api.js'
export { JetStreamPublishError } from './js-letters.js'
export { natsMessage } from './js-message.js'

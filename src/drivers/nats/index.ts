export type { NatsAddress, NatsConnectionLike, NatsHeadersLike, NatsMessageLike } from './client.js'
export { connectNats, NATS_ADDRESSES, natsAddressOption, natsHeaders } from './connect.js'

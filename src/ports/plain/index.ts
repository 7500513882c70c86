export type { RetryPort } from './call.js'
export type { PlainClaimReply } from './claim.js'
export type { PlainOptions } from './options.js'
export { overPlainPorts, type PlainLedger } from './over-plain-ports.js'

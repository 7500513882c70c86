export type { PlainOptions } from './options.js'
export { overPlainPorts } from './over-plain-ports.js'

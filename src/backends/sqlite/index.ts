/** Work in one SQLite file, for any number of processes on one machine. */
export { WrongModeError } from '../../ports/mode.js'
export type { DeadLetter } from '../../ports/ports.js'
export { type SqliteBackend, type SqliteBackendOptions, sqliteBackend } from './backend.js'
export type { SqliteQueue } from './ports/queue.js'
export type { SqliteStore } from './ports/store.js'
export type { Removed } from './retention.js'

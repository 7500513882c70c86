/** Work in one SQLite file, for any number of processes on one machine. */
export { WrongModeError } from '../../ports/mode.js'
export { type SqliteBackend, type SqliteBackendOptions, sqliteBackend } from './backend.js'
export type { DeadLetter, SqliteQueue } from './queue.js'
export type { SqliteStore } from './store.js'
export type { Removed } from './sweep.js'

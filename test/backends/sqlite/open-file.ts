import { type SqliteBackend, type SqliteBackendOptions, sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { temporaryFile } from '../../drivers/sqlite/temporary.js'

/** A backend on a new file, which goes with the test. */
export function openFile(options: Partial<SqliteBackendOptions> = {}): SqliteBackend {
  return sqliteBackend({ file: temporaryFile(), ...options })
}

export { ledgerOn } from '../ledger-on.js'
export { temporaryFile }

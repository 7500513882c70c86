import { postgresBackend } from '../../../src/backends/postgres/index.js'
import { redisBackend } from '../../../src/backends/redis/index.js'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import type { Backend } from '../../../src/ports/ports.js'

/** The backend behind an address: `sqlite:/path/to/file`, `postgres://…` or `redis://…`. */
export function backendAt(address: string): Backend & { close(): Promise<void> } {
  if (address.startsWith('sqlite:')) return sqliteBackend({ file: address.slice('sqlite:'.length) })
  if (address.startsWith('postgres:')) return postgresBackend({ connectionString: address })
  if (address.startsWith('redis:')) return redisBackend({ url: address })
  throw new Error(`no backend has an address like "${address}"`)
}

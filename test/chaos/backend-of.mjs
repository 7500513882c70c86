// The backend behind an address, as a user would open it.

/**
 * @param {string} address `sqlite:/path/to/file`, `postgres://…` or `redis://…`
 * @param {{ clock?: import('../../src/core/time/clock.js').Clock }} [options] the clock is only for a file: servers have their own
 * @returns {Promise<import('../../src/ports/ports.js').Backend & { close(): Promise<void> }>}
 */
export async function backendOf(address, { clock } = {}) {
  if (address.startsWith('sqlite:')) {
    const { sqliteBackend } = await import('millrace/sqlite')
    return sqliteBackend({ file: address.slice('sqlite:'.length), ...(clock && { clock }) })
  }
  if (address.startsWith('postgres:')) {
    const { postgresBackend } = await import('millrace/postgres')
    return postgresBackend({ connectionString: address })
  }
  if (address.startsWith('redis:')) {
    const { redisBackend } = await import('millrace/redis')
    return redisBackend({ url: address })
  }
  throw new Error(`no backend has an address like "${address}"`)
}

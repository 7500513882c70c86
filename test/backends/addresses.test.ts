import { inspect } from 'node:util'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { postgresStacks } from '../../src/guild/stacks/index.js'

const SECRET = 'hunter2-very-secret'

/** All that an error shows when it is printed, causes and properties included. */
function shownBy(make: () => unknown): string {
  try {
    make()
  } catch (error) {
    expect(error).toMatchObject({ code: 'BAD_OPTION' })
    return inspect(error, { depth: 10, showHidden: true })
  }
  throw new Error('it was accepted')
}

describe('an address that cannot be used', () => {
  it.each([
    ['another scheme', () => redisBackend({ url: `http://user:${SECRET}@host:6379` })],
    ['no scheme', () => redisBackend({ url: `user:${SECRET}@host:6379` })],
    ['a port that is none', () => redisBackend({ url: `redis://user:${SECRET}@host:port` })],
    ['a password with @ and /', () => redisBackend({ url: `http://user:a@b/${SECRET}@host:6379` })],
    ['a pool beside it', () => bothGiven(`postgres://user:${SECRET}@host/db`)],
    ['a password in the query', () => bothGiven(`postgres://host/db?user=u&password=${SECRET}`)],
    ['a port that is none', () => postgresBackend({ connectionString: `postgres://user:${SECRET}@host:port/db` })],
    [
      'a port to listen on that is none',
      () =>
        postgresBackend({
          connectionString: 'postgres://host/db',
          listenConnectionString: `postgres://u:${SECRET}@h:x/db`,
        }),
    ],
    ['a port that is none', () => postgresStacks({ connectionString: `postgres://user:${SECRET}@host:port/db` })],
  ])('is refused without its password: %s', (_name, make) => {
    expect(shownBy(make)).not.toContain(SECRET)
  })

  it('is not one that pg would read', async () => {
    for (const connectionString of [
      'postgres://user:p%40ss@/db',
      'postgresql:///db?host=/var/run/postgresql',
      'postgres://%2Fvar%2Frun%2Fpostgresql/db',
      'postgres://user:with space@host/db',
      'socket:/tmp?db=x',
    ]) {
      await postgresBackend({ connectionString }).close()
    }
  })
})

function bothGiven(connectionString: string): unknown {
  return postgresBackend({ connectionString, pool: new pg.Pool({ max: 1 }) })
}

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readAddress } from '../../src/cli/connect/address.js'
import { redisDangers } from '../../src/cli/connect/redis.js'
import { safeAddress, secretHider } from '../../src/core/text/secrets.js'

const read = (backend: string | undefined, rest: { schema?: string; prefix?: string } = {}, env = {}) =>
  readAddress({ backend, schema: rest.schema, prefix: rest.prefix }, env)

describe('the address of a backend', () => {
  it('is a file, a database or a server', () => {
    expect(read('sqlite:/tmp/a.db', { prefix: 'x_' })).toMatchObject({
      kind: 'sqlite',
      file: '/tmp/a.db',
      prefix: 'x_',
    })
    expect(read('sqlite:///tmp/a.db')).toMatchObject({ kind: 'sqlite', file: '/tmp/a.db' })
    expect(read('postgresql://u@h/d', { schema: 'work' })).toMatchObject({ kind: 'postgres', schema: 'work' })
    expect(read('rediss://h:6380/1')).toMatchObject({ kind: 'redis', url: 'rediss://h:6380/1' })
  })

  it('comes from the environment where no flag says it', () => {
    expect(read(undefined, {}, { MILLRACE_BACKEND: 'redis://h' })).toMatchObject({ kind: 'redis' })
    expect(read('sqlite:a.db', {}, { MILLRACE_BACKEND: 'redis://h' })).toMatchObject({ kind: 'sqlite' })
  })

  it.each([
    [undefined, 'Which backend?'],
    ['work.db', 'write sqlite:work.db'],
    ['C:\\work.db', 'write sqlite:C:\\work.db'],
    ['file:./work.db', 'write sqlite:./work.db'],
    ['sqlite:', 'must name a file'],
    ['sqlite::memory:', 'must name a file'],
    ['nats://h', 'There is no NATS backend in this version'],
    ['postgress://h', 'Did you mean "postgres"?'],
    ['postgres:', 'not a valid address'],
    ['redis://u:geheim@h:port', 'not a valid address'],
    ['mysql://h', 'takes sqlite:<file>'],
  ])('%j is answered with what to write', (backend, message) => {
    expect(() => read(backend)).toThrow(message)
  })

  it('takes schema and prefix only where there are such', () => {
    expect(() => read('sqlite:a.db', { schema: 'x' })).toThrow('--schema is for PostgreSQL')
    expect(() => read('redis://h', { schema: 'x' })).toThrow('--schema is for PostgreSQL')
    expect(() => read('postgres://h', { prefix: 'x' })).toThrow('use --schema with PostgreSQL')
  })
})

describe('a password in an address', () => {
  it.each([
    ['postgres://ada:geheim@h/d', 'postgres://ada:***@h/d'],
    ['redis://:geheim@h:1', 'redis://:***@h:1'],
    ['postgres://h/d?password=geheim&x=1', 'postgres://h/d?password=***&x=1'],
    ['postgres://ada:ge@heim@h/d', 'postgres://ada:***@h/d'],
    ['postgres://ada@h/d', 'postgres://ada@h/d'],
  ])('%s is shown as %s', (address, shown) => expect(safeAddress(address)).toBe(shown))

  it('is never shown, in whatever words a driver speaks of it', () => {
    const word = fc.stringMatching(/^[a-zA-Z0-9!$%&()*+,.;=^_~-]{4,20}$/)
    fc.assert(
      fc.property(word, word, (password, around) => {
        fc.pre(!`${around}postgres://ada@h/d cannot`.includes(password))
        const hide = secretHider(`postgres://ada:${encodeURIComponent(password)}@h/d`)
        const said = `${around} ${password} cannot postgres://ada:${encodeURIComponent(password)}@h/d ${around}`
        expect(hide(said)).not.toContain(password)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('the settings of a Redis', () => {
  const sound = 'aof_enabled:1\r\nrdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\n'
  const codes = (version: string, memory: string, persistence = sound) =>
    redisDangers(version, memory, persistence).map(({ code }) => code)

  it('endanger nothing when it neither evicts nor forgets', () => {
    expect(codes('7.0.15', 'maxmemory_policy:noeviction\r\n')).toEqual([])
  })

  it('are reported if they endanger accepted work', () => {
    expect(
      codes('6.0.1', 'maxmemory_policy:allkeys-lru\r\n', 'aof_enabled:0\r\nrdb_last_bgsave_status:err\r\n'),
    ).toEqual(['server-too-old', 'eviction', 'no-append-only-file', 'writes-fail'])
  })
})

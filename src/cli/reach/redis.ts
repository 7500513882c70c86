import type { Clock } from '../../core/clock.js'
import type { Ms } from '../../core/time.js'
import { RedisConnection } from '../../drivers/redis/index.js'
import type { Address } from './address.js'
import { Closers, opsOn } from './ops-on.js'
import type { Danger, Reached, ServerFacts } from './reached.js'
import { NoGuildHereError } from './storage.js'

type RedisAddress = Extract<Address, { readonly kind: 'redis' }>

/** Reaches a Redis; `answerMs` is how long it may take to answer one command. Its storage has no versions: it is made as it is used. */
export function reachRedis({ url, name, prefix }: RedisAddress, clock: Clock, answerMs: Ms): Reached {
  const closers = new Closers()
  // Workers try again for ever; somebody who asks wants to hear at once what is wrong.
  let giveUp: (error: Error) => void = () => undefined
  const broken = new Promise<never>((_, reject) => {
    giveUp = reject
  })
  broken.catch(() => undefined)
  const connection = new RedisConnection({ address: { url }, commandTimeoutMs: answerMs, onError: (e) => giveUp(e) })
  closers.add(() => connection.close())

  return {
    kind: 'redis',
    name,
    async facts(): Promise<ServerFacts> {
      const client = await Promise.race([connection.ready(), broken])
      const askedAt = clock.now()
      const begun = clock.monotonic()
      const [seconds, micros] = (await client.eval("return redis.call('TIME')", 0)) as [string, string]
      const tookMs = clock.monotonic() - begun
      const [server, memory, persistence] = await Promise.all(
        ['server', 'memory', 'persistence'].map((section) => client.info(section)),
      )
      const version = infoOf(server!, 'redis_version') ?? 'of an unknown version'
      return {
        server: `Redis ${version}`,
        at: Number(seconds) * 1_000 + Number(micros) / 1_000,
        askedAt,
        tookMs,
        storage: [],
        dangers: redisDangers(version, memory!, persistence!),
      }
    },
    async ops(needs) {
      await Promise.race([connection.ready(), broken])
      const { redisBackend } = await import('../../backends/redis/backend.js')
      const backend = redisBackend({
        url,
        commandTimeoutMs: answerMs,
        ...(prefix === undefined ? {} : { prefix }),
        // What endangers data is for `doctor` to tell; a lost connection makes the call fail that waits for it.
        onError: () => undefined,
      })
      closers.add(() => backend.close())
      return opsOn(backend, clock, needs, closers, async () => {
        throw new NoGuildHereError()
      })
    },
    migrate: async () => [],
    close: () => closers.close(),
  }
}

/** One line of `INFO`. */
function infoOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1]
}

/** What the settings of a server endanger, read from its own words. */
export function redisDangers(version: string, memory: string, persistence: string): Danger[] {
  const found: Danger[] = []
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < 6 || (major === 6 && minor < 2))
    found.push({
      code: 'server-too-old',
      text: `The server is Redis ${version}; Millrace needs 6.2 or later.`,
      remedy: 'Upgrade the server.',
    })
  const policy = infoOf(memory, 'maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction')
    found.push({
      code: 'eviction',
      text: `maxmemory-policy is ${policy}: when memory is full, the server removes keys, and accepted work with them.`,
      remedy: 'Set maxmemory-policy to noeviction: what does not fit is then refused, and its caller told.',
    })
  if (infoOf(persistence, 'aof_enabled') === '0')
    found.push({
      code: 'no-append-only-file',
      text: 'The append-only file is off: what was accepted since the last snapshot is lost when the server ends.',
      remedy: 'Set appendonly to yes (and appendfsync to always where a power cut must lose nothing).',
    })
  const writes = [infoOf(persistence, 'aof_last_write_status'), infoOf(persistence, 'rdb_last_bgsave_status')]
  if (writes.includes('err'))
    found.push({
      code: 'writes-fail',
      text: 'The server could not write its file the last time it tried: what it has accepted is in memory only.',
      remedy: 'Look at its log and its disk.',
    })
  return found
}

import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'
import { RedisConnection } from '../../drivers/redis/index.js'
import type { Address } from './address.js'
import type { Connected, Danger, ServerFacts } from './connected.js'
import { Closers, opsOn } from './ops-on.js'
import { NoGuildHereError } from './storage.js'

type RedisAddress = Extract<Address, { readonly kind: 'redis' }>

/** Connects to Redis; `answerMs` is the timeout of one command. Its storage has no versions. */
export function connectRedis({ url, name, prefix }: RedisAddress, clock: Clock, answerMs: Ms): Connected {
  const closers = new Closers()
  // Workers retry forever; a person wants to see the error immediately.
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
        // `doctor` reports dangerous settings; a lost connection fails the pending call.
        onError: () => undefined,
      })
      closers.add(() => backend.close())
      const stacksOn = async () => {
        throw new NoGuildHereError()
      }
      return opsOn(backend, clock, needs, closers, { hasGuild: needs.guild === true, stacksOn })
    },
    migrate: async () => [],
    close: () => closers.close(),
  }
}

/** One line of `INFO`. */
function infoOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S*)`, 'm').exec(info)?.[1]
}

/** Dangerous settings, read from `INFO`. */
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
      remedy:
        'Set maxmemory-policy to noeviction: work that does not fit is then rejected, and its caller gets an error.',
    })
  if (infoOf(persistence, 'aof_enabled') === '0')
    found.push({
      code: 'no-append-only-file',
      text: 'The append-only file is off: work accepted since the last snapshot is lost when the server stops.',
      remedy: 'Set appendonly to yes (and appendfsync to always where a power cut must lose nothing).',
    })
  const writes = [infoOf(persistence, 'aof_last_write_status'), infoOf(persistence, 'rdb_last_bgsave_status')]
  if (writes.includes('err'))
    found.push({
      code: 'writes-fail',
      text: 'The last write to disk failed: accepted work is only in memory.',
      remedy: 'Check its log and its disk.',
    })
  return found
}

import { Redis } from 'ioredis'
import type { RedisClientLike } from '../../../src/backends/redis/index.js'
import { script } from '../../../src/backends/redis/scripts.js'

/** What was sent: the name of the command, and its words. */
export interface Sent {
  readonly name: string
  readonly words: readonly string[]
}

/** Scripts that say nothing to anybody: after them there is nothing to wait for but their answer. */
const SILENT = new Set(
  (['claim', 'lease', 'read', 'groups-read', 'store', 'pop', 'facts'] as const).map((name) => script(name).sha),
)

/** A client whose traffic a test can see. */
export interface WatchedClient {
  readonly client: RedisClientLike
  readonly sent: Sent[]
  /**
   * Nothing is under way: every command was answered, and every message that had been published by then has arrived. The server
   * writes to a connection in order, so the answer to a ping comes after all that was published before.
   */
  resting(): boolean
  close(): void
}

export function watchedClient(url: string): WatchedClient {
  const sent: Sent[] = []
  const clients: Redis[] = []
  const listening: Redis[] = []
  let underWay = 0
  let commands = 0
  let heardUpTo = -1
  let isAsking = false

  const watch = (client: Redis): Redis => {
    clients.push(client)
    const send = client.sendCommand.bind(client)
    client.sendCommand = (...given: Parameters<Redis['sendCommand']>) => {
      const [command] = given
      const isOurs = !['info', 'client', 'ping', 'hello'].includes(command.name)
      if (isOurs) {
        sent.push({ name: command.name, words: command.args.map(String) })
        underWay += 1
        if (!SILENT.has(String(command.args[0]))) commands += 1
        const over = () => {
          underWay -= 1
        }
        ;(command.promise as Promise<unknown>).then(over, over)
      }
      return send(...given)
    }
    return client
  }
  // Nothing waits in the client and nothing is sent twice, as with the connections that the backend makes itself.
  const main = watch(new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0 }))
  const duplicate = main.duplicate.bind(main)
  main.duplicate = ((...given: Parameters<Redis['duplicate']>) => {
    const copy = watch(duplicate(...given))
    listening.push(copy)
    return copy
  }) as Redis['duplicate']

  return {
    client: main as unknown as RedisClientLike,
    sent,
    resting() {
      if (underWay > 0 || clients.some(({ status }) => status === 'connecting' || status === 'connect')) return false
      if (heardUpTo === commands || listening.length === 0) return true
      if (isAsking) return false
      isAsking = true
      const upTo = commands
      void Promise.allSettled(listening.filter(({ status }) => status === 'ready').map((one) => one.ping())).then(
        () => {
          isAsking = false
          heardUpTo = upTo
        },
      )
      return false
    },
    close() {
      for (const client of clients) client.disconnect()
    },
  }
}

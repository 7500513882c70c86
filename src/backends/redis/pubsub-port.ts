import { MillraceError } from '../../core/error.js'
import { OptionTypeError } from '../../core/options.js'
import { show } from '../../core/show.js'
import type { PubSub } from '../../ports/ports.js'
import type { Desk } from './desk.js'

/** The channel of a namespace. */
export interface RedisPubSub extends PubSub {
  publish(message: string): Promise<void>
}

export function pubsubPort(desk: Desk): RedisPubSub {
  const channel = `${desk.tag}:pubsub`
  return {
    async publish(message: string): Promise<void> {
      if (typeof message !== 'string')
        throw new MillraceError('BAD_MESSAGE', `publish(message): it must be a string, got ${show(message)}.`)
      // A subscriber in this process hears it, even if its subscription is still on the way to the server.
      await desk.subscriptions.settled()
      const client = await desk.connection.ready()
      await desk.connection.within('a publish', client, client.publish(channel, message))
    },
    subscribe(hear: (message: string) => void): () => void {
      if (typeof hear !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', hear)
      return desk.subscriptions.on(channel, hear)
    },
  }
}

import { MillraceError } from '../../../core/error.js'
import { OptionTypeError } from '../../../core/options.js'
import { describeValue } from '../../../core/text/describe-value.js'
import type { PubSub } from '../../../ports/ports.js'
import type { RedisContext } from '../context.js'

/** The channel of a namespace. */
export interface RedisPubSub extends PubSub {
  publish(message: string): Promise<void>
}

export function pubsubPort(context: RedisContext): RedisPubSub {
  const channel = `${context.tag}:pubsub`
  return {
    async publish(message: string): Promise<void> {
      if (typeof message !== 'string')
        throw new MillraceError('BAD_MESSAGE', `publish(message): it must be a string, got ${describeValue(message)}.`)
      // A subscriber in this process receives it, even if its subscription is still on the way to the server.
      await context.subscriptions.settled()
      const client = await context.connection.ready()
      await context.connection.within('a publish', client, client.publish(channel, message))
    },
    subscribe(listener: (message: string) => void): () => void {
      if (typeof listener !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', listener)
      return context.subscriptions.on(channel, listener)
    },
  }
}

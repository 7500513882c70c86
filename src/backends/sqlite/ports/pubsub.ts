import { OptionTypeError } from '../../../core/options.js'
import type { PubSub } from '../../../ports/ports.js'
import type { SqliteContext } from '../context.js'
import { checkText } from '../text.js'

/** Fan-out to every process on the file: in this one immediately, in the others when they see that the file has changed. */
export function pubsubPort({ connection, notifier }: SqliteContext): PubSub {
  return {
    async publish(message: string): Promise<void> {
      checkText('publish(message)', message)
      await connection.write((sql, now) => notifier.storeMessage(sql, message, now))
      notifier.publish(message)
    },
    subscribe(listener: (message: string) => void): () => void {
      if (typeof listener !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', listener)
      return notifier.subscribe(listener)
    },
  }
}

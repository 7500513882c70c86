import { OptionTypeError } from '../../core/options.js'
import type { PubSub } from '../../ports/ports.js'
import type { Parts } from './ledger.js'
import { checkText } from './text.js'

/** Fan-out to every process on the file: in this one at once, in the others when they see that the file has changed. */
export function pubsubPort({ connection, signals }: Parts): PubSub {
  return {
    async publish(message: string): Promise<void> {
      checkText('publish(message)', message)
      await connection.write((sql, now) => signals.leaveMessage(sql, message, now))
      signals.publish(message)
    },
    subscribe(listener: (message: string) => void): () => void {
      if (typeof listener !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', listener)
      return signals.subscribe(listener)
    },
  }
}

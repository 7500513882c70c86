import { newToken } from '../../../core/ids.js'
import { OptionTypeError } from '../../../core/options.js'
import type { PubSub } from '../../../ports/ports.js'
import type { Connection } from '../connection.js'
import { checkText } from '../storable.js'

/** A notification carries 8000 bytes: longer messages go in parts of so many bytes. */
const PART_BYTES = 7_800

/** Fan-out to every process that listens on this schema. */
export interface PostgresPubSub extends PubSub {
  publish(message: string): Promise<void>
}

/** The plain port of the channel: one notification for a message, several for a long one. */
export function pubsubPort(connection: Connection): PostgresPubSub {
  const channel = `${connection.channel}_pub`
  const subscriptions = new Set<{ readonly listener: (message: string) => void }>()
  const parts = new Map<string, string[]>()
  let leave: (() => void) | undefined
  const deliver = (message: string): void => {
    for (const subscription of [...subscriptions]) {
      if (!subscriptions.has(subscription)) continue
      try {
        subscription.listener(message)
      } catch {
        // Loss is allowed on this channel, and a listener's fault is the listener's: no caller here could handle it.
      }
    }
  }
  const receive = (payload: string): void => {
    if (payload.startsWith('=')) {
      deliver(payload.slice(1))
      return
    }
    const [, id, at, of, text] = /^#(\S+) (\d+) (\d+) ([\s\S]*)$/.exec(payload) ?? []
    if (id === undefined || text === undefined) return
    const known = parts.get(id) ?? []
    known[Number(at)] = text
    parts.set(id, known)
    // The parts of one message are sent by one statement, and so arrive in order.
    if (Number(at) + 1 < Number(of)) return
    parts.delete(id)
    if (known.filter((part) => part !== undefined).length === Number(of)) deliver(known.join(''))
  }
  return {
    async publish(message: string): Promise<void> {
      checkText('publish', 'message', message, Number.POSITIVE_INFINITY)
      const { driver } = connection
      // Earlier subscribers receive it, even if the subscription is still on its way to the server.
      await driver.listening()
      const payloads = Buffer.byteLength(message) < PART_BYTES ? [`=${message}`] : partsOf(message)
      const statement = {
        name: 'millrace_publish',
        text: 'select pg_notify($1, p.payload) from unnest($2::text[]) with ordinality p(payload, n) order by p.n',
        values: [channel, payloads],
      }
      await connection.inOrder(() => driver.query(statement))
    },
    subscribe(listener: (message: string) => void): () => void {
      if (typeof listener !== 'function') throw new OptionTypeError('subscribe(listener)', 'a function', listener)
      // A fresh object each time: the same function may be subscribed twice and unsubscribed once.
      const subscription = { listener }
      subscriptions.add(subscription)
      leave ??= connection.driver.listen(channel, receive, () => parts.clear())
      return () => {
        subscriptions.delete(subscription)
        if (subscriptions.size > 0) return
        leave?.()
        leave = undefined
      }
    },
  }
}

function partsOf(message: string): string[] {
  const id = newToken()
  const texts: string[] = []
  let text = ''
  let bytes = 0
  // By characters, so that no pair is torn apart.
  for (const character of message) {
    const size = Buffer.byteLength(character)
    if (bytes + size > PART_BYTES) {
      texts.push(text)
      text = ''
      bytes = 0
    }
    text += character
    bytes += size
  }
  texts.push(text)
  return texts.map((part, i) => `#${id} ${i} ${texts.length} ${part}`)
}

import type { PubSub } from '../../ports/ports.js'
import { holds, same } from './check.js'
import { clausesOn } from './clause.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import type { TestTime } from './time.js'

/** What a clause on a pub/sub gets: its own channel, and its time. */
export interface PubSubBench {
  readonly pubsub: PubSub
  readonly time: TestTime
}

/**
 * Publishes until `heard` is true: loss is allowed, and a subscription may take a moment to reach its server, so one
 * message proves nothing. What is published again may be received again.
 */
async function publishUntil({ pubsub, time }: PubSubBench, message: string, heard: () => boolean): Promise<boolean> {
  return time.eventually(async () => {
    if (heard()) return true
    await pubsub.publish(message)
    await time.quiet()
    return heard()
  })
}

/** The obligations of `PubSub`. */
export const pubsubClauses = clausesOn<PubSubBench>()({
  'pubsub: every subscriber receives a message, the publisher too': {
    law: 'A message reaches every current subscriber, those of the publishing process included.',
    hint: 'whether the publishing process is left out, or only the first subscriber is called.',
    async run(bench) {
      const heard = [new Set<string>(), new Set<string>(), new Set<string>()]
      for (const set of heard) bench.pubsub.subscribe((message) => void set.add(message))
      const all = await publishUntil(bench, 'hello', () => heard.every((set) => set.has('hello')))
      holds(all, `all three subscribers received the message (${heard.filter((set) => set.size > 0).length} did)`)
    },
  },
  'pubsub: messages arrive exactly as they were published': {
    law: 'Messages are opaque text and arrive unchanged.',
    hint: 'how the message is encoded or cut on its way.',
    async run(bench) {
      const heard = new Set<string>()
      bench.pubsub.subscribe((message) => void heard.add(message))
      // No long text: some channels (LISTEN/NOTIFY) carry 8000 bytes, and the engine's messages are short.
      for (const text of HOSTILE_TEXTS)
        holds(await publishUntil(bench, text, () => heard.has(text)), `${JSON.stringify(text)} arrived`)
      same([...heard].toSorted(), [...HOSTILE_TEXTS].toSorted(), 'all messages that arrived')
    },
  },
  'pubsub: an unsubscribed listener receives nothing more': {
    law: 'subscribe returns an unsubscribe; calling it twice is harmless and ends no other subscription.',
    hint: 'whether unsubscribing removes by position, or removes an equal listener of another subscriber.',
    async run(bench) {
      const heard: string[] = []
      const others = new Set<string>()
      const listener = (message: string) => void heard.push(message)
      const leave = bench.pubsub.subscribe(listener)
      bench.pubsub.subscribe((message) => void others.add(message))
      holds(await publishUntil(bench, 'one', () => heard.includes('one') && others.has('one')), 'both receive at first')
      leave()
      leave()
      heard.length = 0
      holds(await publishUntil(bench, 'two', () => others.has('two')), 'the other listener still receives')
      await bench.time.quiet()
      same(heard, [], 'what the unsubscribed listener received')
    },
  },
  'pubsub: a listener that throws does not affect the others': {
    law: 'A listener that throws neither stops delivery to the others nor makes publish throw.',
    hint: 'whether each listener is called in its own try.',
    async run(bench) {
      const heard = new Set<string>()
      bench.pubsub.subscribe(() => {
        throw new Error('a listener of the conformance suite throws on purpose')
      })
      bench.pubsub.subscribe((message) => void heard.add(message))
      holds(
        await publishUntil(bench, 'hello', () => heard.has('hello')),
        'the listener after the throwing one receives',
      )
    },
  },
  'pubsub: a listener may unsubscribe during delivery': {
    law: 'A listener may unsubscribe, itself or another, during delivery; the others still receive that message.',
    hint: 'whether delivery walks over the live list of listeners.',
    async run(bench) {
      const heard = { first: 0, last: 0 }
      const leave: (() => void)[] = []
      leave.push(
        bench.pubsub.subscribe(() => {
          heard.first += 1
          for (const go of leave) go()
        }),
      )
      leave.push(bench.pubsub.subscribe(() => undefined))
      bench.pubsub.subscribe(() => {
        heard.last += 1
      })
      holds(await publishUntil(bench, 'hello', () => heard.last > 0), 'the last listener receives')
      holds(
        heard.first <= 1,
        `the listener that left at its first message receives one at most (it received ${heard.first})`,
      )
    },
  },
  'pubsub: its methods work detached': {
    law: 'A port is called without `this`, and { ...pubsub } is a pub/sub too.',
    hint: 'whether the factory returns a class instance or a method that reads `this`.',
    async run(bench) {
      const { publish, subscribe } = { ...bench.pubsub }
      holds(typeof publish === 'function' && typeof subscribe === 'function', 'both methods survive an object spread')
      let heard = false
      const leave = subscribe(() => {
        heard = true
      })
      holds(
        await publishUntil({ ...bench, pubsub: { publish, subscribe } }, 'x', () => heard),
        'the message is received',
      )
      leave()
    },
  },
})

import type { PubSub } from '../../ports/ports.js'
import { holds, same } from './check.js'
import { clausesOn } from './clause.js'
import { HOSTILE_TEXTS } from './hostile.js'
import type { TestTime } from './time.js'

/** What a clause on a pub/sub gets: a channel of its own, and its time. */
export interface PubSubBench {
  readonly pubsub: PubSub
  readonly time: TestTime
}

/**
 * Publishes until `heard` is true: loss is allowed, and a subscription may take a moment to reach its server, so one
 * message proves nothing. What is published again may be heard again.
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
  'pubsub: every subscriber hears a message, the publisher too': {
    law: 'A message reaches every current subscriber, those of the publishing process included.',
    look: 'whether the own process is left out, or only the first subscriber is told.',
    async run(bench) {
      const heard = [new Set<string>(), new Set<string>(), new Set<string>()]
      for (const set of heard) bench.pubsub.subscribe((message) => void set.add(message))
      const all = await publishUntil(bench, 'hello', () => heard.every((set) => set.has('hello')))
      holds(all, `all three subscribers heard the message (${heard.filter((set) => set.size > 0).length} did)`)
    },
  },
  'pubsub: messages arrive exactly as they were published': {
    law: 'Messages are opaque text and arrive unchanged.',
    look: 'how the message is encoded or cut on its way.',
    async run(bench) {
      const heard = new Set<string>()
      bench.pubsub.subscribe((message) => void heard.add(message))
      // No long text: some channels (LISTEN/NOTIFY) carry 8000 bytes, and the engine's messages are short.
      for (const text of HOSTILE_TEXTS)
        holds(await publishUntil(bench, text, () => heard.has(text)), `${JSON.stringify(text)} arrived`)
      same([...heard].toSorted(), [...HOSTILE_TEXTS].toSorted(), 'all messages that arrived')
    },
  },
  'pubsub: an unsubscribed listener hears nothing more': {
    law: 'subscribe returns an unsubscribe; calling it twice is harmless and ends no other subscription.',
    look: 'whether unsubscribing removes by position, or removes an equal listener of somebody else.',
    async run(bench) {
      const heard: string[] = []
      const others = new Set<string>()
      const listener = (message: string) => void heard.push(message)
      const leave = bench.pubsub.subscribe(listener)
      bench.pubsub.subscribe((message) => void others.add(message))
      holds(await publishUntil(bench, 'one', () => heard.includes('one') && others.has('one')), 'both hear at first')
      leave()
      leave()
      heard.length = 0
      holds(await publishUntil(bench, 'two', () => others.has('two')), 'the other listener still hears')
      await bench.time.quiet()
      same(heard, [], 'what the unsubscribed listener heard')
    },
  },
  'pubsub: a listener that throws stops nobody': {
    law: 'A listener that throws neither stops delivery to the others nor makes publish throw.',
    look: 'whether each listener is called in its own try.',
    async run(bench) {
      const heard = new Set<string>()
      bench.pubsub.subscribe(() => {
        throw new Error('a listener of the conformance suite throws on purpose')
      })
      bench.pubsub.subscribe((message) => void heard.add(message))
      holds(await publishUntil(bench, 'hello', () => heard.has('hello')), 'the listener after the throwing one hears')
    },
  },
  'pubsub: a listener may leave while it is told': {
    law: 'A listener may unsubscribe, itself or another, during delivery; the others still hear that message.',
    look: 'whether delivery walks over the live list of listeners.',
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
      holds(await publishUntil(bench, 'hello', () => heard.last > 0), 'the last listener hears')
      holds(heard.first <= 1, `the listener that left at its first message hears one at most (it heard ${heard.first})`)
    },
  },
  'pubsub: is a bag of closures': {
    law: 'A port is called without `this`, and { ...pubsub } is a pub/sub too.',
    look: 'whether the factory returns a class instance or a method that reads `this`.',
    async run(bench) {
      const { publish, subscribe } = { ...bench.pubsub }
      holds(typeof publish === 'function' && typeof subscribe === 'function', 'both methods survive an object spread')
      let heard = false
      const leave = subscribe(() => {
        heard = true
      })
      holds(await publishUntil({ ...bench, pubsub: { publish, subscribe } }, 'x', () => heard), 'the message is heard')
      leave()
    },
  },
})

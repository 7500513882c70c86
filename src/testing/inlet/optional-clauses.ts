import { ack, nakAfter } from '../../core/stream/result.js'
import { Hopper } from '../../source/hopper/hopper.js'
import type { CapabilityName } from '../../source/inlets/subscription.js'
import { type IdempotencyStore, idempotency } from '../../source/middleware/idempotency.js'
import { holds, present, same } from '../conformance/check.js'
import { textIn } from './bench.js'
import { inletClausesOf } from './clause.js'

const EVERY_CAPABILITY: readonly CapabilityName[] = [
  'seekable',
  'consumerGroups',
  'sharedDurable',
  'partitionOrdered',
  'orderedDelivery',
  'batched',
  'transactional',
  'lagReporter',
  'leaseExtender',
  'releaser',
  'starter',
  'identity',
  'pausable',
  'nakSupport',
]

/** What an inlet may offer beyond pulling and settling. */
export const optionalClauses = inletClausesOf({
  'inlet: has exactly the capabilities that it claims': {
    law: 'capability(name) is there for exactly the names in capabilities, as this instance is configured.',
    hint: 'whether capabilities are a matter of the class or of the instance.',
    async run(bench) {
      for (const name of EVERY_CAPABILITY) {
        const has = bench.sub.capability(name) !== undefined
        same(has, bench.inlet.capabilities.has(name), `whether the subscription has ${name}, as the inlet claims`)
      }
    },
  },
  'inlet: gives a message back without counting': {
    law: 'release gives a message back: it is delivered again immediately, with the same delivery count.',
    hint: 'whether a release is a nak in disguise.',
    needs: ['releaser'],
    async run(bench) {
      const releaser = present(bench.sub.capability('releaser'), 'releaser')
      await bench.publish('a', 'b')
      const first = await bench.next('the first message')
      await releaser.release(first)
      const again = await bench.next('the message that was given back')
      same([textIn(again), again.deliveryCount], ['a', first.deliveryCount], 'value and delivery count')
      await bench.settle(again, ack())
      await bench.rejection(bench.settle(first, ack()), 'settling a delivery that was given back')
    },
  },
  'inlet: counts the deliveries that begin to run': {
    law: 'Where starts count, deliveryCount is 1 until a delivery began to run, and a nak of one that did not begin counts as a start.',
    hint: 'whether a lapse, a release or a second start of one delivery counts.',
    needs: ['starter', 'leaseExtender', 'redelivery'],
    async run(bench) {
      const starter = present(bench.sub.capability('starter'), 'starter')
      await bench.publish('a')
      const first = await bench.next('the message')
      same(first.deliveryCount, 1, 'the first delivery count')
      const second = await bench.next('the message after a lapse without a start')
      same(second.deliveryCount, 1, 'the delivery count after a delivery that had not begun')
      same(await starter.start([second]), [true], 'whether the lease is held')
      await starter.start([second])
      const third = await bench.next('the message after a lapse with a start')
      same(third.deliveryCount, 2, 'the delivery count after a delivery that had begun')
      same(await starter.start([second]), [false], 'whether a lapsed lease is held')
      await bench.settle(third, nakAfter(0))
      same((await bench.next('the message after a nak')).deliveryCount, 3, 'the delivery count after a nak')
    },
  },
  'inlet: names its messages': {
    law: 'Where a subscription has identity, the cursor of a message is the same in every delivery and at every consumer, and never that of another.',
    hint: 'whether the cursor is counted by the consumer instead of being stored with the message.',
    needs: ['identity', 'redelivery'],
    async run(bench) {
      same(bench.sub.capability('identity'), true, 'the capability')
      await bench.publish('a', 'a')
      const [first, second] = await bench.take(2, 'a message')
      const names = [first!, second!].map((message) => message.cursor.toString())
      holds(names[0] !== names[1], 'two messages with the same value have two cursors')
      await bench.settle(second!, ack())
      await bench.settle(first!, nakAfter(0))
      const other = await bench.subscribe()
      await bench.sub.close()
      const again = await bench.next('the message at another consumer', other)
      same<string | undefined>(again.cursor.toString(), names[0], 'the cursor of a redelivery at another consumer')
      await bench.settle(again, ack(), other)
      await bench.publish('a')
      const later = await bench.next('a message published later', other)
      holds(!names.includes(later.cursor.toString()), 'a message published later has a cursor of its own')
    },
  },
  'inlet: is refused by idempotency where its messages have no identity': {
    law: 'A hopper with idempotency and its default key runs on a subscription with identity only.',
    hint: 'whether the capability is declared for the inlet as it is configured.',
    async run(bench) {
      const keys: string[] = []
      const store: IdempotencyStore = {
        begin: async (key) => {
          keys.push(key)
          return { state: 'acquired', token: 't' }
        },
        commit: async () => undefined,
        release: async () => undefined,
      }
      const hopper = new Hopper({ clock: bench.time.clock, lagIntervalMs: 0, middleware: [idempotency({ store })] })
      const stop = new AbortController()
      const running = hopper.run(bench.sub, () => ack(), { signal: stop.signal })
      if (bench.sub.capability('identity') === undefined) {
        const error = await bench.rejection(running, 'a run with idempotency without keyOf')
        same((error as { readonly code?: unknown }).code, 'BAD_OPTION', 'the code of the refusal')
        return
      }
      const ended = running.catch(() => undefined)
      await bench.publish('a')
      holds(await bench.time.eventually(() => keys.length === 1), 'the message runs under a key')
      stop.abort()
      await ended
    },
  },
  'inlet: fetches batches': {
    law: 'nextBatch waits for one message and takes what is ready, at most as many as asked; never none.',
    hint: 'whether a batch waits to be full, and whether a limit below 1 counts as 1.',
    needs: ['batched'],
    async run(bench) {
      const batched = present(bench.sub.capability('batched'), 'batched')
      const signal = new AbortController().signal
      await bench.publish('1', '2', '3', '4', '5')
      const values: string[] = []
      const take = async (limit: number, most: number) => {
        const batch = await batched.nextBatch(limit, { signal })
        holds(batch.length >= 1 && batch.length <= most, `nextBatch(${limit}) gives between 1 and ${most} messages`)
        values.push(...batch.map(textIn))
        await batched.settleBatch(batch, ack())
      }
      await take(0, 1)
      await take(2, 2)
      while (values.length < 5) await take(100, 5)
      same(values, ['1', '2', '3', '4', '5'], 'the values')
      await bench.nothing(6, 'after the batches were settled')
    },
  },
  'inlet: an aborted nextBatch takes nothing': {
    law: 'nextBatch with an aborted signal rejects with its reason and takes nothing.',
    hint: 'whether nextBatch checks the signal as next does.',
    needs: ['batched'],
    async run(bench) {
      const batched = present(bench.sub.capability('batched'), 'batched')
      await bench.publish('a')
      const reason = new Error('enough')
      const aborted = batched.nextBatch(5, { signal: AbortSignal.abort(reason) })
      same(await bench.rejection(aborted, 'an aborted nextBatch'), reason, 'the rejection')
      const message = await bench.next('the message')
      same(message.deliveryCount ?? 1, 1, 'the delivery count')
    },
  },
  'inlet: reports its lag': {
    law: 'lag counts what is not settled: it rises with what is published and falls with what is acked.',
    hint: 'what the figure stands for.',
    needs: ['lagReporter'],
    async run(bench) {
      const reporter = present(bench.sub.capability('lagReporter'), 'lagReporter')
      await bench.publish('a', 'b', 'c')
      const [first] = await bench.take(1, 'a message')
      const before = await reporter.lag()
      await bench.settle(first!, ack())
      const after = await reporter.lag()
      holds(before >= 2 && before <= 3, `with three published and one out the lag is 2 or 3, got ${before}`)
      same(after, 2, 'the lag once one was acked')
    },
  },
  'inlet: seeks behind a cursor': {
    law: 'seekToCursor resumes after the cursor, seekToStart from the first message, seekToEnd with what comes next.',
    hint: 'whether a seek is inclusive, and whether a waiting next sees it.',
    needs: ['seekable'],
    async run(bench) {
      const seekable = present(bench.sub.capability('seekable'), 'seekable')
      await bench.publish('1', '2', '3')
      const messages = await bench.take(3, 'a message')
      for (const message of messages) await bench.settle(message, ack())
      await seekable.seekToCursor(messages[0]!.cursor)
      const after = await bench.take(2, 'a message after the cursor')
      same(after.map(textIn), ['2', '3'], 'the values after the first cursor')
      for (const message of after) await bench.settle(message, ack())
      await seekable.seekToStart()
      const start = await bench.take(3, 'a message from the start')
      same(start.map(textIn), ['1', '2', '3'], 'the values from the start')
      for (const message of start) await bench.settle(message, ack())
      await seekable.seekToStart()
      await seekable.seekToEnd()
      await bench.publish('4')
      same(textIn(await bench.next('a message after the end')), '4', 'the value after seekToEnd')
    },
  },
  'inlet: a seek reaches a next that waits': {
    law: 'A seek while next waits makes it deliver from the new position; it does not end the subscription.',
    hint: 'whether a seek is mistaken for the end of the stream.',
    needs: ['seekable'],
    async run(bench) {
      const seekable = present(bench.sub.capability('seekable'), 'seekable')
      await bench.publish('1')
      await bench.settle(await bench.next('the message'), ack())
      const waiting = bench.next('the message after the seek')
      await bench.time.quiet()
      await seekable.seekToStart()
      same(textIn(await waiting), '1', 'the value')
    },
  },
  'inlet: refuses to seek where it cannot': {
    law: 'seekToCursor rejects a cursor of another stream, and any seek rejects on a closed subscription.',
    hint: 'whether a foreign cursor is taken for one of ours because it has the same form.',
    needs: ['seekable'],
    async run(bench) {
      const seekable = present(bench.sub.capability('seekable'), 'seekable')
      const other = await bench.fresh()
      await bench.publish('mine')
      await other.publish('theirs')
      const theirs = await other.next('a message of the other stream')
      await bench.rejection(seekable.seekToCursor(theirs.cursor), 'seeking to a foreign cursor')
      await bench.sub.close()
      await bench.rejection(seekable.seekToStart(), 'seeking a closed subscription')
    },
  },
})

import { ack, nak } from '../../core/stream/result.js'
import { holds, same } from '../conformance/check.js'
import { HOSTILE_TEXTS } from '../conformance/hostile-texts.js'
import { textIn } from './bench.js'
import { inletClausesOf } from './clause.js'

/** A value is bytes: text that has no form in UTF-8 cannot be published as it is. */
const isUtf8 = (text: string) => Buffer.from(text).toString() === text

/** Fetching, waiting and aborting. */
export const consumingClauses = inletClausesOf({
  'inlet: delivers values as they were published, in order': {
    law: 'What was published is delivered with the same bytes; within a stream, in the order of publishing.',
    hint: 'how values are encoded on their way, and whether fetched batches are handed out from the front.',
    async run(bench) {
      const values = [...HOSTILE_TEXTS.filter(isUtf8), 'x'.repeat(10_000)]
      await bench.publish(...values)
      same((await bench.take(values.length, 'a value')).map(textIn), values, 'the values delivered')
    },
  },
  'inlet: shows a message as the contract says': {
    law: 'A message has bytes as its value, a subject, a partition key or "", a cursor with a text, and headers.',
    hint: 'how messages are made: no field may be missing, and `as` answers undefined for a foreign token.',
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      holds(message.value instanceof Uint8Array, 'value is a Uint8Array')
      holds(message.key === null || message.key instanceof Uint8Array, 'key is null or a Uint8Array')
      holds(message.subject !== '', 'subject is not empty')
      same(typeof message.partitionKey, 'string', 'the type of partitionKey')
      holds(message.cursor.toString() !== '', 'the cursor has a text')
      same(message.headers.get('no-such-header'), undefined, 'a header that is not there')
      same(message.as({ name: 'a foreign token' }), undefined, 'as(a foreign token)')
    },
  },
  'inlet: next waits for a message': {
    law: 'next does not return before there is a message, and returns soon after one was published.',
    hint: 'whether a waiting next is woken, or polls.',
    async run(bench) {
      await bench.nothing(1, 'before anything was published')
      const waiting = bench.next('a message published while next waits')
      await bench.time.quiet()
      await bench.publish('late')
      same(textIn(await waiting), 'late', 'the value delivered')
    },
  },
  'inlet: an abort before next takes nothing': {
    law: 'next with an aborted signal rejects with its reason, and the message is there for the next one, not counted.',
    hint: 'whether the signal is checked before a message is taken.',
    async run(bench) {
      await bench.publish('a')
      const reason = new Error('enough')
      const signal = AbortSignal.abort(reason)
      same(await bench.rejection(bench.sub.next({ signal }), 'next with an aborted signal'), reason, 'the rejection')
      const message = await bench.next('the message')
      same(message.deliveryCount ?? 1, 1, 'the delivery count after an aborted next')
    },
  },
  'inlet: an abort while next waits takes nothing': {
    law: 'A waiting next rejects with the abort reason immediately, and takes nothing that is published later.',
    hint: 'whether an abandoned wait still takes the next message, which would be lost.',
    async run(bench) {
      const reason = new Error('enough')
      const stop = new AbortController()
      const waiting = bench.rejection(bench.sub.next({ signal: stop.signal }), 'a next that is aborted')
      await bench.time.quiet()
      stop.abort(reason)
      same(await waiting, reason, 'the rejection')
      await bench.publish('a')
      await bench.time.quiet()
      const message = await bench.next('the message published after the abort')
      same([textIn(message), message.deliveryCount ?? 1], ['a', 1], 'value and delivery count')
    },
  },
  'inlet: settles in any order while other messages are unsettled': {
    law: 'Several messages may be unsettled at a time, and are settled in any order and concurrently.',
    hint: 'whether settling one affects another, as a high-water mark does.',
    async run(bench) {
      await bench.publish('a', 'b', 'c', 'd')
      const messages = await bench.take(4, 'a message')
      await Promise.all(messages.toReversed().map((message) => bench.settle(message, ack())))
      await bench.nothing(6, 'after all were acked')
    },
  },
  'inlet: loses nothing across a gap of naks': {
    law: 'Messages that were nakked come back, although later ones have been acked meanwhile, also to a new subscription.',
    hint: 'whether an ack of a later message confirms earlier ones.',
    needs: ['redelivery'],
    async run(bench) {
      await bench.publish('1', '2', '3', '4', '5')
      const messages = await bench.take(5, 'a message')
      for (const message of messages) {
        await bench.settle(message, textIn(message) === '2' || textIn(message) === '4' ? nak(new Error('no')) : ack())
      }
      const first = await bench.next('the first of the nakked messages')
      await bench.settle(first, ack())
      await bench.sub.close()
      const sub = await bench.subscribe()
      const second = await bench.next('the second of the nakked messages', sub)
      await bench.settle(second, ack(), sub)
      same([textIn(first), textIn(second)].toSorted(), ['2', '4'], 'the values that came back')
      await bench.nothing(6, 'after all were acked', sub)
    },
  },
})

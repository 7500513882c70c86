import { ack, nak, nakAfter, type Result, skip, term } from '../../core/stream/result.js'
import { holds, same } from '../conformance/check.js'
import { type InletBench, textIn } from './bench.js'
import { inletClausesOf } from './clause.js'

const boom = new Error('boom')

/** A message settled like this is gone for good. */
async function isGone(bench: InletBench, result: Result): Promise<void> {
  await bench.publish('a', 'b')
  await bench.settle(await bench.next('the first message'), result)
  const second = await bench.next('the second message')
  same(textIn(second), 'b', 'the value after the first was settled')
  await bench.settle(second, ack())
  await bench.nothing(8, 'once both were settled')
}

/** What each result means. */
export const settlingClauses = inletClausesOf({
  'inlet: ack ends a message': {
    law: 'An acked message is never delivered again, also not after its lease would have lapsed.',
    hint: 'whether the ack reaches the broker, and is confirmed before settle resolves.',
    run: (bench) => isGone(bench, ack()),
  },
  'inlet: skip ends a message': {
    law: 'A skipped message is acked.',
    hint: 'whether the class of an ack makes a difference to the adapter. It must not.',
    run: (bench) => isGone(bench, skip()),
  },
  'inlet: term ends a message': {
    law: 'A terminated message is never delivered again.',
    hint: 'whether a term is acknowledged, with or without a dead letter.',
    run: (bench) => isGone(bench, term(boom)),
  },
  'inlet: a dead-lettered term ends a message': {
    law: 'A term that was dead-lettered already is settled without a second dead letter, and without asking for a target.',
    hint: 'whether `deadLettered` is read.',
    run: (bench) => isGone(bench, { action: 'term', class: 'poison', requeueMs: 0, error: boom, deadLettered: true }),
  },
  'inlet: nak brings a message back': {
    law: 'A nakked message is delivered again.',
    hint: 'whether the adapter redelivers by itself: nothing else will.',
    needs: ['redelivery'],
    async run(bench) {
      await bench.publish('a')
      await bench.settle(await bench.next('the message'), nak(boom))
      same(textIn(await bench.next('the message after its nak')), 'a', 'the value that came back')
    },
  },
  'inlet: counts deliveries': {
    law: 'deliveryCount is 1 at first and rises by one with each redelivery.',
    hint: 'where the count comes from, and whether a redelivered message shows the new one.',
    needs: ['delivery count', 'redelivery'],
    async run(bench) {
      await bench.publish('a')
      const counts: (number | undefined)[] = []
      for (let i = 0; i < 4; i += 1) {
        const message = await bench.next(`delivery ${i + 1}`)
        counts.push(message.deliveryCount)
        await bench.settle(message, nak(boom))
      }
      same(counts, [1, 2, 3, 4], 'the delivery counts')
    },
  },
  'inlet: keeps a delayed nak back': {
    law: 'A nak with a delay comes back after the delay and not before; others are delivered meanwhile.',
    hint: 'whether the delay reaches the broker, and whether settle sleeps instead of returning.',
    needs: ['nakSupport', 'redelivery'],
    async run(bench) {
      await bench.publish('later')
      await bench.settle(await bench.next('the message'), nakAfter(bench.time.ms(6), boom))
      await bench.publish('now')
      const now = await bench.next('the other message')
      same(textIn(now), 'now', 'the value delivered during the delay')
      await bench.settle(now, ack())
      await bench.nothing(3, 'before the delay has passed')
      const again = await bench.next('the message after its delay')
      same(textIn(again), 'later', 'the value delivered after the delay')
      await bench.settle(again, ack())
    },
  },
  'inlet: refuses to settle a delivery twice': {
    law: 'A second settlement of one delivery rejects with ALREADY_SETTLED, and the first one stands.',
    hint: 'whether a delivery remembers that it was settled.',
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      await bench.settle(message, ack())
      const error = await bench.rejection(bench.settle(message, nak(boom)), 'a second settlement')
      same((error as { code?: unknown }).code, 'ALREADY_SETTLED', 'the code of the error')
      await bench.nothing(6, 'after a nak that came too late')
    },
  },
  'inlet: refuses a message of another inlet': {
    law: 'settle rejects a message that another inlet delivered.',
    hint: 'how a message is recognised as ours: never only by its cursor.',
    async run(bench) {
      const other = await bench.fresh()
      await bench.publish('mine')
      await other.publish('theirs')
      const theirs = await other.next('the message of the other inlet')
      await bench.rejection(bench.settle(theirs, ack()), 'settling a foreign message')
      same(textIn(await bench.next('our own message')), 'mine', 'the value delivered')
      await other.settle(theirs, ack(), other.sub)
    },
  },
  'inlet: refuses what is no result': {
    law: 'settle rejects an unknown action, and the delivery can still be settled properly.',
    hint: 'whether an unknown action is read as one of the known ones.',
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      const unknown = { action: 'later', class: 'unclassified', requeueMs: 0 } as unknown as Result
      await bench.rejection(bench.settle(message, unknown), 'settling with an unknown action')
      await bench.settle(message, ack())
      holds(true, 'the delivery can be settled afterwards')
      await bench.nothing(6, 'after the ack')
    },
  },
})

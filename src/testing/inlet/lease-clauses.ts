import { ack, inProgress, manual } from '../../core/stream/result.js'
import { holds, present, same } from '../conformance/check.js'
import { textIn } from './bench.js'
import { inletClausesOf } from './clause.js'

/** What is out unsettled, and for how long. */
export const leaseClauses = inletClausesOf({
  'inlet: brings back what was not settled in time': {
    law: 'An unsettled message is delivered again once its lease has lapsed, counted as one more delivery.',
    hint: 'what notices that a lease has lapsed, also when nothing else happens.',
    needs: ['leaseExtender', 'redelivery'],
    async run(bench) {
      await bench.publish('a')
      const first = await bench.next('the message')
      // Where only starts count, one that never began is not counted.
      await bench.sub.capability('starter')?.start([first])
      await bench.nothing((bench.leaseMs / bench.time.ms(1)) * 0.6, 'while it is leased')
      const again = await bench.next('the message after its lease')
      same(textIn(again), 'a', 'the value that came back')
      if (first.deliveryCount !== undefined) same(again.deliveryCount, 2, 'the delivery count')
    },
  },
  'inlet: does not bring back what is extended': {
    law: 'extend keeps a message for another lease from now.',
    hint: 'whether extend reaches the broker, and from when the new lease counts.',
    needs: ['leaseExtender'],
    async run(bench) {
      const extender = present(bench.sub.capability('leaseExtender'), 'leaseExtender')
      same(extender.leaseMs, bench.leaseMs, 'leaseMs')
      await bench.publish('a')
      const message = await bench.next('the message')
      for (let i = 0; i < 4; i += 1) {
        await bench.time.pass(bench.leaseMs * 0.6)
        holds((await extender.extend(message)) !== false, `the lease is held after extension ${i + 1}`)
      }
      await bench.settle(message, ack())
      await bench.nothing(8, 'after an ack within the extended lease')
    },
  },
  'inlet: extends many leases like one at a time': {
    law: 'extendMany, where it is offered, answers for each message in order.',
    hint: 'the order of the answers, and that one lost lease does not fail the others.',
    needs: ['leaseExtender'],
    async run(bench) {
      const extender = present(bench.sub.capability('leaseExtender'), 'leaseExtender')
      if (extender.extendMany === undefined) return
      await bench.publish('a', 'b', 'c')
      const messages = await bench.take(3, 'a message')
      const words = await extender.extendMany(messages)
      same(
        words.map((word) => word !== false),
        [true, true, true],
        'whether the leases are held',
      )
    },
  },
  'inlet: says that a lapsed lease is not held': {
    law: 'extend of a message that has been delivered again does not answer true, and does not take it back.',
    hint: 'whether extend compares the lease and not only the message.',
    needs: ['leaseExtender', 'redelivery'],
    async run(bench) {
      const extender = present(bench.sub.capability('leaseExtender'), 'leaseExtender')
      await bench.publish('a')
      const first = await bench.next('the message')
      await bench.time.pass(bench.leaseMs * 1.1)
      const again = await bench.next('the message after its lease')
      holds((await extender.extend(first).catch(() => false)) !== true, 'a lapsed lease is not reported as held')
      await bench.settle(again, ack())
      await bench.nothing(8, 'after the redelivery was acked')
    },
  },
  'inlet: a settlement that comes too late settles nothing': {
    law: 'Settling a delivery whose lease has lapsed does not touch the redelivery; it rejects where the backend can detect that.',
    hint: 'whether settling is fenced by the delivery, and not by the id of the message.',
    needs: ['leaseExtender', 'redelivery'],
    async run(bench) {
      await bench.publish('a')
      const first = await bench.next('the message')
      await bench.time.pass(bench.leaseMs * 1.1)
      const again = await bench.next('the message after its lease')
      await bench.settle(first, ack()).catch(() => undefined)
      await bench.time.pass(bench.leaseMs * 1.1)
      const third = await bench.next('the redelivery, which is not settled')
      same([textIn(again), textIn(third)], ['a', 'a'], 'the values')
      await bench.settle(third, ack())
    },
  },
  'inlet: inProgress extends the lease': {
    law: 'inProgress as a settlement extends the lease once, and the delivery can still be settled.',
    hint: 'whether inProgress counts as a settlement. It does not.',
    needs: ['leaseExtender'],
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      await bench.time.pass(bench.leaseMs * 0.6)
      await bench.settle(message, inProgress())
      await bench.time.pass(bench.leaseMs * 0.6)
      await bench.settle(message, ack())
      await bench.nothing(8, 'after the ack')
    },
  },
  'inlet: manual does nothing': {
    law: 'manual leaves a delivery to its handler: where that did nothing, it comes back when its lease lapses.',
    hint: 'whether manual is read as an ack.',
    needs: ['leaseExtender', 'redelivery'],
    async run(bench) {
      await bench.publish('a')
      await bench.settle(await bench.next('the message'), manual())
      await bench.time.pass(bench.leaseMs * 1.1)
      const again = await bench.next('the unsettled message')
      await bench.settle(again, ack())
    },
  },
})

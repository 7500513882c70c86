import { ack, nak } from '../../core/stream/result.js'
import { isDrained } from '../../core/stream/stream-errors.js'
import { Hopper } from '../../source/hopper/hopper.js'
import { retry } from '../../source/middleware/retry.js'
import { holds, same } from '../conformance/check.js'
import { textIn } from './bench.js'
import { inletClausesOf } from './clause.js'

const never = () => new AbortController().signal

/** Closing and draining, and a hopper on top. */
export const endingClauses = inletClausesOf({
  'inlet: delivers what is left after close, then is drained': {
    law: 'After close, what was queued is still delivered; then next rejects with DRAINED. close is idempotent.',
    hint: 'whether close throws away what was fetched ahead.',
    async run(bench) {
      await bench.publish('a', 'b')
      await bench.sub.close()
      await bench.sub.close()
      same((await bench.take(2, 'a message after close')).map(textIn), ['a', 'b'], 'the values delivered')
      const error = await bench.rejection(bench.sub.next({ signal: never() }), 'next on a drained subscription')
      holds(isDrained(error), 'it rejects with DRAINED')
    },
  },
  'inlet: drains without waiting for unsettled messages': {
    law: 'A closed subscription is drained although messages are out; they can be settled afterwards.',
    hint: 'whether draining waits for settlements: a partial batch is settled only when the loop has ended.',
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      await bench.sub.close()
      const error = await bench.rejection(bench.sub.next({ signal: never() }), 'next with a message out')
      holds(isDrained(error), 'it rejects with DRAINED')
      await bench.settle(message, ack())
      const sub = await bench.subscribe()
      await bench.nothing(6, 'after a settlement on a closed subscription', sub)
    },
  },
  'inlet: close wakes a waiting next': {
    law: 'A next that waits rejects with DRAINED when the subscription is closed.',
    hint: 'whether close reaches a waiting next.',
    async run(bench) {
      const waiting = bench.rejection(bench.sub.next({ signal: never() }), 'a next that waits')
      await bench.time.quiet()
      await bench.sub.close()
      await bench.time.pass(bench.time.ms(2))
      holds(isDrained(await waiting), 'it rejects with DRAINED')
    },
  },
  'inlet: close of the inlet closes its subscriptions': {
    law: 'After close of the inlet its subscriptions drain, and subscribe rejects.',
    hint: 'whether the inlet knows its subscriptions.',
    async run(bench) {
      await bench.publish('a')
      const message = await bench.next('the message')
      await bench.inlet.close()
      await bench.inlet.close()
      const error = await bench.rejection(bench.sub.next({ signal: never() }), 'next after close of the inlet')
      holds(isDrained(error), 'it rejects with DRAINED')
      await bench.rejection(bench.subscribe(), 'subscribe after close')
      same(textIn(message), 'a', 'the message that is out')
    },
  },
  'inlet: refuses a subscribe that was aborted': {
    law: 'subscribe with an aborted signal rejects with its reason.',
    hint: 'whether the signal is checked.',
    async run(bench) {
      const reason = new Error('enough')
      const subscribing = bench.inlet.subscribe({ topics: ['conformance'] }, { signal: AbortSignal.abort(reason) })
      same(await bench.rejection(subscribing, 'an aborted subscribe'), reason, 'the rejection')
    },
  },
  'inlet: a hopper counts attempts and gives up at the cap': {
    law: 'With a retry cap of 3, a handler that always fails runs exactly 3 times, as attempts 1, 2 and 3.',
    hint: 'whether deliveryCount is set on redelivered messages: without it the cap never fires.',
    needs: ['delivery count', 'redelivery'],
    async run(bench) {
      await bench.publish('bad', 'good')
      const hopper = new Hopper({
        clock: bench.time.clock,
        lagIntervalMs: 0,
        middleware: [retry({ maxAttempts: 3, backoff: () => bench.time.ms(0.2) })],
      })
      const attempts: (number | undefined)[] = []
      const running = hopper.run(bench.sub, (_ctx, message) => {
        if (textIn(message) === 'good') return ack()
        attempts.push(message.deliveryCount)
        return nak(new Error('always'))
      })
      for (let i = 0; i < 40 && attempts.length < 3; i += 1) {
        await bench.time.quiet()
        await bench.time.pass(bench.time.ms(0.2))
      }
      await bench.time.pass(bench.time.ms(2))
      const closed = hopper.close()
      await bench.time.pass(bench.time.ms(1))
      await closed
      same(attempts, [1, 2, 3], 'the attempts that ran')
      const { acked, nak: naks, term } = await running
      same({ acked, naks, term }, { acked: 1, naks: 2, term: 1 }, 'the outcomes')
    },
  },
})

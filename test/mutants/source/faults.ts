import type { OneLineFault } from '../one-line-faults.js'

const inHopper = (test: string) => ({ file: 'test/source/middleware/in-a-hopper.slow.test.ts', test })
const middleware = (name: string, test: string) => ({ file: `test/source/middleware/${name}.test.ts`, test })

const hopper = (name: string, test: string) => ({ file: `test/source/hopper/${name}.test.ts`, test })

/** What a source layer could get wrong, and stablekernel/crucible's partly did. */
export const SOURCE_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'retry is allowed outside dlq',
    file: 'src/source/middleware/chain.ts',
    find: "if (kind === 'dlq' && seen.has('retry'))",
    replace: "if (kind === 'dlq' && seen.has('retry') && seen.has('dlq'))",
    caughtBy: inHopper('an order that would lose messages is refused when the hopper is made'),
  },
  {
    fault: 'the attempt is not threaded',
    file: 'src/source/hopper/prepare.ts',
    find: 'return attempt === undefined ? ctx : withAttempt(ctx, attempt)',
    replace: 'return attempt === undefined ? ctx : ctx.with({ name: "lost" }, attempt) && ctx',
    caughtBy: inHopper('the attempts are counted from delivery to delivery, and the last one is dead-lettered'),
  },
  {
    fault: 'idempotency remembers before success',
    file: 'src/source/middleware/idempotency.ts',
    find: "      return 'release'\n    case 'term':",
    replace: "      return 'commit'\n    case 'term':",
    caughtBy: inHopper('a failure is not remembered: the redelivery runs, and only then is a duplicate dropped'),
  },
  {
    fault: 'the routing key is the idempotency key',
    file: 'src/source/middleware/idempotency-key.ts',
    find: '  const { headers } = message\n',
    replace:
      '  const { headers } = message\n  if (message.key !== null) return new TextDecoder().decode(message.key)\n',
    caughtBy: middleware('idempotency', 'is never its routing key: two messages of one customer both run'),
  },
  {
    fault: 'a duplicate of a running message counts as done',
    file: 'src/source/middleware/idempotency-store.ts',
    find: "if (found !== undefined && found !== FREE) return { state: 'busy' }",
    replace: "if (found !== undefined && found !== FREE) return { state: 'done' }",
    caughtBy: middleware('idempotency', 'waits'),
  },
  {
    fault: 'a busy key exhausts retry',
    file: 'src/source/middleware/idempotency.ts',
    find: 'nakAfter(delayMs, new DuplicateInFlightError(key), { noEscalate: true })',
    replace: 'nakAfter(delayMs, new DuplicateInFlightError(key))',
    caughtBy: inHopper('a hundred copies'),
  },
  {
    fault: 'a stale token commits what another holds',
    file: 'src/source/middleware/idempotency-store.ts',
    find: 'if (await compareAndSet(key, token, DONE, ttlMs)) return',
    replace: 'if (await compareAndSet(key, (await get(key)) ?? token, DONE, ttlMs)) return',
    caughtBy: middleware('idempotency-store', 'by a token that is stale'),
  },
  {
    fault: 'a commit that failed turns success into failure',
    file: 'src/source/middleware/idempotency.ts',
    find: "await quietly(ctx, 'commit', key, () => store.commit(key, token, ttlMs))",
    replace: 'await store.commit(key, token, ttlMs)',
    caughtBy: middleware('idempotency', 'on commit: what was done is done'),
  },
  {
    fault: 'a dead letter that was not written is swallowed',
    file: 'src/source/middleware/dead-letter.ts',
    find: 'return nakAfter(delayMs, both(result.error, storeError), extras)',
    replace: 'return result',
    caughtBy: inHopper(
      'a store that is down for a while loses nothing: the message comes again until it is dead-lettered',
    ),
  },
  {
    fault: 'a dead letter that was not written is escalated by a retry outside',
    file: 'src/source/middleware/dead-letter.ts',
    find: '{ nextAttempt: attempts + 1, noEscalate: true, note',
    replace: '{ nextAttempt: attempts + 1, note',
    caughtBy: middleware('dead-letter', 'is never escalated'),
  },
  {
    fault: 'a dead letter that was not written is tried again immediately',
    file: 'src/source/middleware/dead-letter.ts',
    find: 'const delayMs = Math.floor(doublingDelay(',
    replace: 'const delayMs = 0 * Math.floor(doublingDelay(',
    caughtBy: middleware('dead-letter', 'waits longer'),
  },
  {
    fault: 'the deadLettered flag is lost',
    file: 'src/source/middleware/dead-letter.ts',
    find: 'return Object.freeze({ ...result, deadLettered: true })',
    replace: 'return result',
    caughtBy: inHopper('the attempts are counted from delivery to delivery, and the last one is dead-lettered'),
  },
  {
    fault: 'a record shares the buffers of the adapter',
    file: 'src/source/middleware/dead-letter.ts',
    find: 'value: new Uint8Array(message.value)',
    replace: 'value: message.value.slice()',
    caughtBy: middleware('dead-letter', 'is dead-lettered as a copy'),
  },
  {
    fault: 'a delay that the handler asked for is overwritten',
    file: 'src/source/middleware/retry.ts',
    find: 'floorMs: result.requeueMs,',
    replace: 'floorMs: 0,',
    caughtBy: middleware('retry', 'does not come back before the handler asked for it'),
  },
  {
    fault: 'an unclassified nak never runs out of attempts',
    file: 'src/source/middleware/retry.ts',
    find: "if (result.action !== 'nak' || result.noEscalate === true) return result",
    replace:
      "if (result.action !== 'nak' || result.noEscalate === true || result.class === 'unclassified') return result",
    caughtBy: middleware('retry', 'counts when it is unclassified too'),
  },
  {
    fault: 'retry escalates what must not be',
    file: 'src/source/middleware/retry.ts',
    find: "if (result.action !== 'nak' || result.noEscalate === true) return result",
    replace: "if (result.action !== 'nak') return result",
    caughtBy: middleware('retry', 'must not be escalated'),
  },
  {
    fault: 'what cannot be decoded bypasses the middleware',
    file: 'src/source/hopper/execute-singly.ts',
    find: 'const ctx = contextOf(hopper, delivery, attempt)',
    replace:
      'if (overrideOf(message) !== undefined) return overrideOf(message)!\n      const ctx = contextOf(hopper, delivery, attempt)',
    caughtBy: inHopper('goes through the middleware, so that it is dead-lettered'),
  },
  {
    fault: 'a registry that is down makes every message poison',
    file: 'src/source/middleware/schema.ts',
    find: "(verdict.class === 'retryable' && verdict.rule !== 'default')",
    replace: 'false',
    caughtBy: middleware('schema', 'could not reach its registry'),
  },
  {
    fault: 'a replay that failed is gone from the dead letters',
    file: 'src/source/middleware/mem-dead-letter.ts',
    find: "if (result.action === 'ack' || hasMoved) this.#letters.delete(letter)",
    replace: 'this.#letters.delete(letter)',
    caughtBy: middleware('mem-dead-letter', 'keeps what fails again'),
  },
  {
    fault: 'a replay that is dead-lettered again is there twice',
    file: 'src/source/middleware/mem-dead-letter.ts',
    find: 'if (letter === undefined) this.#letters.add({ record, isOut: false })',
    replace: 'if (letter !== null) this.#letters.add({ record, isOut: false })',
    caughtBy: middleware('mem-dead-letter', 'with its own dlq and retry'),
  },
  {
    fault: 'one member of a batch takes the others with it',
    file: 'src/source/middleware/define-middleware.ts',
    find: 'const result = thrown === undefined ? checked(results[taken++]) : resultIn(ctx, thrown.error)',
    replace: 'const result = thrown === undefined ? checked(results[i]) : resultIn(ctx, thrown.error)',
    caughtBy: inHopper('gives every member'),
  },
  {
    fault: 'content types are compared as they are spelt',
    file: 'src/source/message/media-type.ts',
    find: '.trim().toLowerCase()',
    replace: '.trim()',
    caughtBy: { file: 'test/source/codec-registry.test.ts', test: 'as JSON' },
  },
  {
    fault: 'a run whose lease was lost is settled all the same',
    file: 'src/source/loop/loop-run.ts',
    find: "    if (delivery.state === 'lost') {\n      this.#lost(delivery)\n      delivery.onSettled?.()\n    } else if (",
    replace: '    if (',
    caughtBy: hopper('heartbeat', 'its result is not settled'),
  },
  {
    fault: 'a place is taken when a message is fetched, not when it starts',
    file: 'src/source/hopper/lanes.ts',
    find: 'return this.#o.maxInFlight - this.#inFlight',
    replace: 'return this.#o.concurrency - this.#inFlight',
    caughtBy: hopper('lanes', 'holds up no other key'),
  },
  {
    fault: 'a shutdown aborts what is running immediately',
    file: 'src/source/loop/loop-run.ts',
    find: 'await Promise.race([this.#empty(), this.#deadline.reached])',
    replace: 'await Promise.resolve()',
    caughtBy: hopper('lifecycle', 'lets it finish in time'),
  },
  {
    fault: 'a shutdown forgets what was fetched and has not started',
    file: 'src/source/loop/loop-run.ts',
    find: 'void this.#release(this.#by.drain(), undefined)',
    replace: 'for (const left of this.#by.drain()) this.#leave(left, "returned")',
    caughtBy: hopper('lifecycle', 'gives them back to their place'),
  },
  {
    fault: 'a handler that returns nothing has acknowledged',
    file: 'src/source/middleware/handler-result.ts',
    find: 'nak(new InvalidResultError(describeValue(result)))',
    replace: "({ action: 'ack', class: 'unclassified', requeueMs: 0 } as const)",
    caughtBy: hopper('results', 'is not read as an ack when it returns'),
  },
  {
    fault: 'a message that takes its process down is delivered forever',
    file: 'src/source/hopper/prepare.ts',
    find: 'if (attempt > maxDeliveries) {',
    replace: 'if (attempt > maxDeliveries + 1) {',
    caughtBy: inHopper('what is delivered too often is dead-lettered as poison, without running again'),
  },
  {
    fault: 'a strict lane moves on after a failure',
    file: 'src/source/hopper/execute-singly.ts',
    find: "while (result.action === 'nak') {",
    replace: "while (result.action === 'nak' && result.requeueMs < 0) {",
    caughtBy: hopper('ordering', 'waits in place and is tried again'),
  },
]

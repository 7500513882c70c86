import type { OneLineFault } from '../one-line-faults.js'

const waiting = (test: string) => ({ file: 'test/guild/stacks/waiting-writes.test.ts', test })

/** What a document store with change capture could get wrong, most of it as it was in the system that it follows. */
export const STACKS_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'progress is stored before the handler has run',
    file: 'src/guild/stacks/watch/durable-delivery.ts',
    find: 'const outcome = await this.#handle(entry, lease)',
    replace:
      'const before = cursor\n        cursor = entry.seq\n        await save(true)\n        const outcome = await this.#handle(entry, lease)\n        if (outcome === `stopped`) cursor = before',
    caughtBy: { file: 'test/guild/clockworks-retry/killed-anywhere.slow.test.ts', test: 'by a process beside it' },
  },
  {
    fault: 'places in the outbox are given out of the order of commits',
    file: 'src/guild/stacks/postgres/migrations.ts',
    find: 'perform pg_advisory_xact_lock(hashtextextended(channel, 1));',
    replace: '',
    caughtBy: { file: 'test/guild/stacks/postgres.server.test.ts', test: 'a place in the outbox is given only when' },
  },
  {
    fault: 'a query from before the commit answers a caller that came after it',
    file: 'src/guild/stacks/watch/durable-delivery.ts',
    find: 'if (!isBehind) {\n      this.#settle((waiter) => waiting.has(waiter))',
    replace: 'if (!isBehind) {\n      this.#settle(() => true)',
    caughtBy: waiting('a query from before the commit'),
  },
  {
    fault: 'progress that is stored late leaves the watcher behind for a moment',
    file: 'src/guild/stacks/watch/durable-delivery.ts',
    find: ' && entry !== batch.at(-1)',
    replace: '',
    caughtBy: waiting('its handler takes long'),
  },
  {
    fault: 'a durable watcher goes on after a failure that is no conflict',
    file: 'src/guild/stacks/watch/durable-delivery.ts',
    find: 'maxAttempts: TRIES[kind],',
    replace: "maxAttempts: kind === 'conflict' ? TRIES[kind] : 1,",
    caughtBy: { file: 'test/guild/stacks/memory.test.ts', test: 'a durable handler that fails is called again' },
  },
  {
    fault: 'an event that cannot be handled is dropped',
    file: 'src/guild/stacks/watch/durable-delivery.ts',
    find: 'await deadLetter(watcher, entry, error, tries)',
    replace: '',
    caughtBy: { file: 'test/guild/stacks/memory.test.ts', test: 'an event that a durable handler can never handle' },
  },
  {
    fault: 'all callers share the transaction that is going on',
    file: 'src/guild/stacks/transaction/transactions.ts',
    find: 'new AsyncContext<Scope>()',
    replace: `new (class {
    now: Scope | undefined
    getStore() { return this.now }
    run<T>(scope: Scope, fn: () => T): T {
      const before = this.now
      this.now = scope
      const result = fn()
      void Promise.resolve(result).catch(() => undefined).then(() => { this.now = before })
      return result
    }
  })()`,
    caughtBy: { file: 'test/guild/stacks/memory.test.ts', test: 'unrelated transactions never share anything' },
  },
]

import assert from 'node:assert/strict'
import type { ChangeEvent, Stacks } from 'millrace/guild/stacks'
import { NonRetryableError } from '../../../../src/core/failure/failure-errors.js'
import { systemClock } from '../../../../src/core/time/clock.js'
import { clausesOn } from '../../../../src/testing/conformance/clause.js'
import { AFTER, type Any, rejectsWith, type StacksBench, turn } from './bench.js'

const idOf = (event: ChangeEvent<Any>): string => (event.type === 'delete' ? event.id : event.entry.id)

/** Watches a book under that name, and collects the ids of its events. */
const hear = (stacks: Stacks, durable: string, seen: string[]): void =>
  stacks.watch<Any>('o', 'a', (event) => void seen.push(idOf(event)), { durable })

/** So long that only something which never comes takes longer, on the busiest machine. */
const NEVER_MS = 60_000

/** Waits for something that another process does. Real time: that process's wake-ups are real, too. */
async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const begun = systemClock.monotonic()
  while (!(await isSo())) {
    if (systemClock.monotonic() - begun > NEVER_MS) assert.fail(`still not so after ${NEVER_MS} ms: ${what}`)
    await new Promise((resolve) => systemClock.after(5, () => resolve(undefined)))
    await turn()
  }
}

export const durableClauses = clausesOn<StacksBench>()({
  'a durable watcher gets events before the write resolves, in commit order': {
    law: 'Coalesced events, in the order of commits, with prev; the originating call waits for them.',
    hint: 'DurableDelivery and append()',
    async run(bench) {
      const seen: ChangeEvent<Any>[] = []
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            await turn()
            seen.push(event)
          },
          { durable: 'w' },
        ),
      )
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: '1', n: 1 })
      assert.equal(seen.length, 1)
      await stacks.transaction(async () => {
        await book.put({ id: '2' })
        await book.patch('1', { n: 2 })
        await stacks.book<Any>('o', 'b').put({ id: 'unwatched' })
      })
      assert.equal(seen.length, 3)
      await book.delete('1')
      assert.deepEqual(seen, [
        { type: 'create', ownerId: 'o', book: 'a', entry: { id: '1', n: 1 } },
        { type: 'create', ownerId: 'o', book: 'a', entry: { id: '2' } },
        { type: 'update', ownerId: 'o', book: 'a', prev: { id: '1', n: 1 }, entry: { id: '1', n: 2 } },
        { type: 'delete', ownerId: 'o', book: 'a', id: '1', prev: { id: '1', n: 2 } },
      ])
      assert.deepEqual(await stacks.watchers(), [
        { name: 'w', ownerId: 'o', book: 'a', behind: 0, holder: null, dead: 0 },
      ])
    },
  },
  'a durable watcher gets the events it missed after a restart': {
    law: 'Events are kept while no process handles the watcher, and delivered in order.',
    hint: 'cursors',
    async run(bench) {
      const first = await bench.process((s) => s.watch('o', 'a', () => undefined, { durable: 'w' }))
      await first.book<Any>('o', 'a').put({ id: 'before' })
      await first.close()
      const writer = await bench.process()
      for (let n = 0; n < 250; n += 1) await writer.book<Any>('o', 'a').put({ id: `d${n}` })
      assert.equal((await writer.watchers())[0]?.behind, 250)
      await writer.close()
      const seen: string[] = []
      const again = await bench.process((s) => hear(s, 'w', seen))
      await until(() => seen.length >= 250, 'all events are delivered')
      assert.deepEqual(
        seen,
        Array.from({ length: 250 }, (_, n) => `d${n}`),
      )
      await until(async () => (await again.watchers())[0]?.behind === 0, 'the cursor has moved')
    },
  },
  'a durable watcher gets writes of other processes immediately': {
    law: 'A wake-up crosses processes.',
    hint: 'onAppend()',
    async run(bench) {
      const seen: string[] = []
      await bench.process((s) => hear(s, 'w', seen))
      const writer = await bench.process()
      for (let n = 0; n < 5; n += 1) {
        await writer.book<Any>('o', 'a').put({ id: `d${n}` })
        await until(() => seen.length === n + 1, `event ${n} is delivered`)
      }
      assert.deepEqual(seen, ['d0', 'd1', 'd2', 'd3', 'd4'])
    },
  },
  'one process of a fleet handles a durable watcher at a time': {
    law: 'Each event is delivered to one of them, never to two at a time, in order over all of them.',
    hint: 'claim()',
    async run(bench) {
      const seen: string[] = []
      let running = 0
      const setup = (s: Stacks) =>
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            running += 1
            assert.equal(running, 1)
            await turn()
            seen.push(idOf(event))
            running -= 1
          },
          { durable: 'w' },
        )
      const [one, two] = [await bench.process(setup), await bench.process(setup)]
      for (let n = 0; n < 20; n += 1) await (n % 2 === 0 ? one : two).book<Any>('o', 'a').put({ id: `d${n}` })
      await until(() => seen.length >= 20, 'all events are delivered')
      assert.deepEqual(
        seen,
        Array.from({ length: 20 }, (_, n) => `d${n}`),
      )
      assert.deepEqual(bench.warnings, [])
    },
  },
  'a durable handler may write to the book it watches': {
    law: 'Its write does not wait for its own events; they are delivered after it, and the chain is limited.',
    hint: 'which writes wait for durable watchers',
    async run(bench) {
      const seen: number[] = []
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            if (event.type === 'delete') return
            const n = event.entry['n'] as number
            seen.push(n)
            if (event.entry['stopAt'] !== n) await s.book<Any>('o', 'a').put({ ...event.entry, n: n + 1 })
          },
          { durable: 'w' },
        ),
      )
      const book = stacks.book<Any>('o', 'a')
      await book.put({ id: 'x', n: 1, stopAt: 3 })
      await until(() => seen.length === 3, 'the chain has ended')
      assert.deepEqual(seen, [1, 2, 3])
      seen.length = 0
      await book.put({ id: 'y', n: 1 })
      await until(() => bench.warnings.length > 0, 'the chain was stopped')
      assert.equal((bench.warnings[0]!.error as { code?: unknown }).code, 'REENTRY_DEPTH')
      assert.equal((await book.get('y'))?.['n'], 16)
    },
  },
  'a durable handler that fails is called again, before the next event comes': {
    law: 'A failure is reported, and the event is delivered again with backoff; no event overtakes it, and no write waits for it.',
    hint: 'handle()',
    async run(bench) {
      const seen: string[] = []
      let fails = 3
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          (event) => {
            seen.push(idOf(event))
            if (idOf(event) !== 'shaky' || fails === 0) return
            fails -= 1
            throw new Error('not yet')
          },
          { durable: 'w' },
        ),
      )
      for (const id of ['good', 'shaky', 'better']) await stacks.book<Any>('o', 'a').put({ id })
      await until(() => seen.includes('better'), 'the failure has passed')
      assert.deepEqual(seen, ['good', 'shaky', 'shaky', 'shaky', 'shaky', 'better'])
      assert.deepEqual(
        bench.warnings.map(({ code, watcher }) => [code, watcher]),
        [['WATCHER_FAILED', 'w']],
      )
      assert.deepEqual(await stacks.deadEvents(), [])
    },
  },
  'an event that a durable handler can never handle is dead-lettered, and the next event comes': {
    law: 'It is kept with its reason, counted, and can be delivered again.',
    hint: 'DeadEvents',
    async run(bench) {
      const seen: string[] = []
      let isMended = false
      const setup = (s: Stacks) =>
        s.watch<Any>(
          'o',
          'a',
          (event) => {
            seen.push(idOf(event))
            if (idOf(event) === 'bad' && !isMended) throw new NonRetryableError('cannot')
          },
          { durable: 'w' },
        )
      const stacks = await bench.process(setup)
      for (const id of ['good', 'bad', 'better']) await stacks.book<Any>('o', 'a').put({ id })
      assert.deepEqual(seen, ['good', 'bad', 'better'])
      assert.deepEqual(
        bench.warnings.map(({ code, watcher }) => [code, watcher]),
        [['EVENT_DEAD_LETTERED', 'w']],
      )
      // Of the store, and not of the process.
      const other = await bench.process()
      const [dead, ...rest] = await other.deadEvents({ watcher: 'w' })
      assert.deepEqual(rest, [])
      assert.match(dead?.error ?? '', /cannot/)
      assert.equal(dead?.tries, 1)
      assert.deepEqual((await other.watchers())[0], {
        name: 'w',
        ownerId: 'o',
        book: 'a',
        behind: 0,
        holder: null,
        dead: 1,
      })
      await rejectsWith(other.redeliver(dead?.id ?? ''), 'NO_HANDLER')
      await rejectsWith(stacks.redeliver(dead?.id ?? ''), 'POISON')
      isMended = true
      await stacks.redeliver(dead?.id ?? '')
      assert.deepEqual(seen, ['good', 'bad', 'better', 'bad', 'bad'])
      assert.equal((await other.watchers())[0]?.dead, 0)
      await rejectsWith(stacks.redeliver(dead?.id ?? ''), 'DEAD_EVENT_NOT_FOUND')
    },
  },
  'a rolled-back transaction sends durable watchers nothing': {
    law: 'Events are kept with the commit, or not at all.',
    hint: 'append()',
    async run(bench) {
      const seen: string[] = []
      const stacks = await bench.process((s) => hear(s, 'w', seen))
      const run = stacks.transaction(async (tx) => {
        await tx.book<Any>('o', 'a').put({ id: 'undone' })
        throw new Error('no')
      })
      await assert.rejects(run, /no/)
      await stacks.book<Any>('o', 'a').put({ id: 'done' })
      assert.deepEqual(seen, ['done'])
    },
  },
  'a new durable watcher starts with what comes after it, also during startup': {
    law: 'No earlier events; every later event, delivered once startup has ended.',
    hint: 'register()',
    async run(bench) {
      const seen: string[] = []
      const stacks = await bench.process(async (s) => {
        await s.book<Any>('o', 'a').put({ id: 'before' })
        hear(s, 'w', seen)
        await s.book<Any>('o', 'a').put({ id: 'startup' })
        assert.deepEqual(seen, [])
      })
      await stacks.book<Any>('o', 'a').put({ id: 'after' })
      await until(() => seen.length === 2, 'both are delivered')
      assert.deepEqual(seen, ['startup', 'after'])
    },
  },
  'the right to a durable watcher is its holder’s until it lapses, and its cursor never goes back': {
    law: 'A process that stood still and was replaced can neither renew nor store its progress, whatever its successor did since.',
    hint: 'renew() and advance()',
    async run(bench) {
      const stacks = await bench.process((s) => s.watch('o', 'a', () => undefined, { durable: 'other' }))
      const { outbox } = await bench.backend()
      await outbox.register('w', { ownerId: 'o', book: 'a' })
      for (const id of ['1', '2', '3']) await stacks.book<Any>('o', 'a').put({ id })
      const stalled = (await outbox.claim('w', 'stalled', 60_000))!
      const [one, two, three] = (await outbox.read('w', stalled.cursor, 10)).map(({ seq }) => seq)
      assert.equal(await outbox.renew('w', 'other', 50), false)
      assert.equal(await outbox.renew('w', 'stalled', 50), true)
      let taken = await outbox.claim('w', 'next', 60_000)
      await until(async () => {
        taken ??= await outbox.claim('w', 'next', 60_000)
        return taken !== null
      }, 'the right lapses')
      assert.deepEqual(taken, stalled)
      assert.equal(await outbox.renew('w', 'stalled', 60_000), false)
      assert.equal(await outbox.advance('w', 'stalled', { from: stalled.cursor, to: one! }, true), false)
      assert.equal(await outbox.advance('w', 'next', { from: stalled.cursor, to: two! }, false), true)
      // Given back: free to be claimed, but the process that lost it cannot renew it.
      assert.equal(await outbox.renew('w', 'stalled', 60_000), false)
      assert.deepEqual(await outbox.claim('w', 'stalled', 60_000), { cursor: two })
      assert.equal(await outbox.advance('w', 'stalled', { from: stalled.cursor, to: one! }, true), false)
      assert.deepEqual(
        (await outbox.read('w', two!, 10)).map(({ seq }) => seq),
        [three],
      )
      assert.equal(await outbox.advance('w', 'stalled', { from: two!, to: three! }, false), true)
      assert.equal(await outbox.renew('w', 'stalled', 60_000), false)
    },
  },
  'a durable name belongs to one book': {
    law: 'A watcher of another book with the same name is refused; the first goes on, and can be forgotten.',
    hint: 'register()',
    async run(bench) {
      const seen: string[] = []
      const first = await bench.process((s) => hear(s, 'w', seen))
      await first.book<Any>('o', 'a').put({ id: '1' })
      const watchB = (s: Stacks) => s.watch('o', 'b', () => undefined, { durable: 'w' })
      const error = await rejectsWith(bench.process(watchB), 'WATCHER_TAKEN')
      assert.match(error.message, /o\/a.*forgetWatcher\("w"\)/s)
      await first.book<Any>('o', 'a').put({ id: '2' })
      assert.deepEqual(seen, ['1', '2'])
      await first.forgetWatcher('w')
      await first.close()
      const next = await bench.process(watchB)
      assert.deepEqual(await next.watchers(), [
        { name: 'w', ownerId: 'o', book: 'b', behind: 0, holder: null, dead: 0 },
      ])
    },
  },
  'a write does not wait for what a durable watcher was behind with': {
    law: 'Only a watcher that had nothing left to do is waited for.',
    hint: 'which writes wait for durable watchers',
    async run(bench) {
      const first = await bench.process((s) => s.watch('o', 'a', () => undefined, { durable: 'w' }))
      await first.close()
      const writer = await bench.process()
      for (const id of ['1', '2']) await writer.book<Any>('o', 'a').put({ id })
      await writer.close()
      const seen: string[] = []
      let open: () => void = () => undefined
      const gate = new Promise<void>((resolve) => {
        open = resolve
      })
      const stacks = await bench.process((s) =>
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            await gate
            seen.push(idOf(event))
          },
          { durable: 'w' },
        ),
      )
      // It would not come back before the gate opens.
      await stacks.book<Any>('o', 'a').put({ id: '3' })
      assert.deepEqual(seen, [])
      open()
      await until(() => seen.length === 3, 'the backlog is delivered')
      assert.deepEqual(seen, ['1', '2', '3'])
      // Its process notes that nothing is left a moment after the last handler; from then on writes wait again.
      let writes = 3
      await until(async () => {
        writes += 1
        await stacks.book<Any>('o', 'a').put({ id: `${writes}` })
        return seen.length === writes
      }, 'a write is waited for')
      assert.deepEqual(
        seen,
        Array.from({ length: writes }, (_, n) => `${n + 1}`),
      )
    },
  },
  'nothing waits for the transaction or the handler that called it': {
    law: 'declare, seal and forgetWatcher inside a transaction, and close inside that or a handler, reject immediately.',
    hint: 'InsideTransactionError',
    async run(bench) {
      const codes: string[] = []
      const tryIn = async (where: string, ...runs: readonly (() => Promise<void>)[]): Promise<void> => {
        for (const run of runs) {
          const code = await run().then(
            () => 'resolved',
            (error: { code?: unknown }) => String(error.code),
          )
          codes.push(`${where} ${code}`)
        }
      }
      const stacks = await bench.process((s) => {
        s.watch('o', 'a', () => tryIn('phase 1', () => s.close()))
        s.watch('o', 'a', () => tryIn('phase 2', () => s.close()), AFTER)
        s.watch('o', 'a', () => tryIn('durable', () => s.close()), { durable: 'w' })
      })
      await stacks.transaction(() =>
        tryIn(
          'transaction',
          () => stacks.declare('o', { d: {} }),
          () => stacks.forgetWatcher('w'),
          () => stacks.seal(),
          () => stacks.close(),
          () => stacks.detached(() => stacks.declare('o', { d: {} })),
        ),
      )
      await stacks.book<Any>('o', 'a').put({ id: '1' })
      assert.deepEqual(codes, [
        ...Array.from({ length: 5 }, () => 'transaction INSIDE_TRANSACTION'),
        'phase 1 INSIDE_TRANSACTION',
        'phase 2 INSIDE_TRANSACTION',
        'durable INSIDE_TRANSACTION',
      ])
      // Outside they work, and the store is none the worse.
      await stacks.declare('o', { d: {} })
      await stacks.forgetWatcher('w')
      assert.deepEqual(bench.warnings, [])
    },
  },
  'several durable watchers each have their own cursor': {
    law: 'Events stay until the last watcher had them; a forgotten watcher holds nothing back.',
    hint: 'advance() and forget()',
    async run(bench) {
      const both = await bench.process((s) => {
        s.watch('o', 'a', () => undefined, { durable: 'w1' })
        s.watch('o', 'a', () => undefined, { durable: 'w2' })
        assert.throws(() => s.watch('o', 'b', () => undefined, { durable: 'w2' }), { code: 'WATCHER_TAKEN' })
        assert.throws(() => s.watch('o', 'b', () => undefined, { durable: 'x', failOnError: true }), {
          code: 'BAD_OPTION',
        })
        assert.throws(() => s.watch('o', 'b', () => undefined, { durable: 'a b' }), { code: 'STACKS_NAME' })
      })
      await both.close()
      const seen: string[] = []
      const one = await bench.process((s) => hear(s, 'w1', seen))
      for (const id of ['1', '2']) await one.book<Any>('o', 'a').put({ id })
      const behind = async () => (await one.watchers()).map(({ name, behind: n }) => [name, n]).sort()
      assert.deepEqual(await behind(), [
        ['w1', 0],
        ['w2', 2],
      ])
      await one.forgetWatcher('w2')
      assert.deepEqual(await behind(), [['w1', 0]])
      await one.book<Any>('o', 'a').put({ id: '3' })
      assert.deepEqual(seen, ['1', '2', '3'])
    },
  },
  'ordinary and durable phase-2 watchers live side by side': {
    law: 'The ordinary ones come first; writes of either trigger the other.',
    hint: 'the order after a commit',
    async run(bench) {
      const log: string[] = []
      const stacks = await bench.process((s) => {
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            log.push(`durable ${idOf(event)}`)
            if (idOf(event) === '1') await s.book<Any>('o', 'b').put({ id: 'from durable' })
          },
          { durable: 'w' },
        )
        s.watch<Any>('o', 'b', (event) => void log.push(`ordinary ${idOf(event)}`), AFTER)
        s.watch<Any>(
          'o',
          'a',
          async (event) => {
            log.push(`ordinary ${idOf(event)}`)
            if (idOf(event) === '1') await s.book<Any>('o', 'a').put({ id: '2' })
          },
          AFTER,
        )
      })
      await stacks.book<Any>('o', 'a').put({ id: '1' })
      await until(() => log.length === 5, 'everything is delivered')
      assert.deepEqual(
        log.filter((line) => line.startsWith('ordinary')),
        ['ordinary 1', 'ordinary 2', 'ordinary from durable'],
      )
      assert.deepEqual(
        log.filter((line) => line.startsWith('durable')),
        ['durable 1', 'durable 2'],
      )
      await rejectsWith(
        stacks.transaction(async () => Promise.reject(Object.assign(new Error('x'), { code: 'MINE' }))),
        'MINE',
      )
    },
  },
})

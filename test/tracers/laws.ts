import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Claimed } from '../../src/ports/item.js'
import type { CommitResult, Settlement } from '../../src/ports/settlement.js'
import {
  ask,
  children,
  contribute,
  enqueue,
  finish,
  gate,
  item,
  park,
  type push,
  retry,
  START,
  times,
} from './settlements.js'
import type { Tracer, TracerStore } from './tracer.js'

const kinds = (results: readonly CommitResult[]) => results.map((result) => result.kind)
const closedBy = (results: readonly CommitResult[]) =>
  results.flatMap((result) => (result.kind === 'applied' ? result.closed : []))
const applied = (n: number) => times(n, () => 'applied')

/** What every store must show. The same list runs on SQLite, Postgres and Redis. */
export function describeLaws(name: string, openStore: () => Promise<TracerStore>): void {
  describe(`the ledger on ${name}`, () => {
    let store: TracerStore
    let one: Tracer
    let two: Tracer
    let now: number

    beforeAll(async () => {
      store = await openStore()
    })
    afterAll(() => store?.close())
    beforeEach(async () => {
      now = START
      await store.reset()
      one = await store.open(() => now)
      two = await store.open(() => now)
    })
    afterEach(async () => {
      await one.close()
      await two.close()
    })

    /** Enqueues and claims. */
    async function running(ids: readonly string[], over: Parameters<typeof item>[1] = {}): Promise<Claimed[]> {
      await one.commit(ids.map((id) => enqueue(item(id, over))))
      const { items } = await one.claim(ask(ids.length))
      expect(items.map(({ lease }) => lease.id)).toEqual(ids)
      return [...items]
    }
    const open = async (id: string) => (await one.groups([id]))[0]?.open
    const view = async (id: string) => (await one.read([id]))[0]

    describe('an enqueue', () => {
      it('is applied once: repeated it answers repeated, with the id as receipt', async () => {
        const first = await one.commit([enqueue(item('a'))])
        const again = await two.commit([enqueue(item('a')), enqueue(item('b')), enqueue(item('b'))])

        expect(first).toEqual([{ kind: 'applied', closed: [] }])
        expect(again).toEqual([
          { kind: 'repeated', id: 'a' },
          { kind: 'applied', closed: [] },
          { kind: 'repeated', id: 'b' },
        ])
        expect((await one.claim(ask(10))).items.map(({ lease }) => lease.id)).toEqual(['a', 'b'])
        expect(await open('a')).toBe(1)
      })

      it('is repeated also when its item has finished', async () => {
        const [a] = await running(['a'])
        await one.commit([finish(a!)])

        expect(await one.commit([enqueue(item('a'))])).toEqual([{ kind: 'repeated', id: 'a' }])
        expect((await one.claim(ask(1))).items).toEqual([])
      })

      it('keeps the envelope as it was, unknown fields included', async () => {
        const envelope = item('a', {
          priority: 2.5,
          tags: ['x', 'ü'],
          gates: [],
          deadline: START + 5,
          later: { field: [1, null] },
          input: '"\\u0000 \\ud800 \u{1f600} \'\\"\\\\"',
        })
        await one.commit([enqueue(envelope)])

        expect((await one.claim(ask(1))).items[0]?.envelope).toEqual(envelope)
      })

      it('of one id by two connections at once is applied by one of them', async () => {
        for (let round = 0; round < 20; round++) {
          const batch = times(20, (i) => enqueue(item(`${round}-${i}`)))
          const both = await Promise.all([one.commit(batch), two.commit(batch.toReversed())])

          expect(kinds(both.flat()).toSorted()).toEqual([...applied(20), ...times(20, () => 'repeated')])
        }
      })
    })

    describe('a claim', () => {
      it('takes by priority, due time and arrival, and never more than asked', async () => {
        await one.commit([
          enqueue(item('late'), { delayMs: 2 }),
          enqueue(item('b')),
          enqueue(item('urgent', { priority: 9 })),
          enqueue(item('a')),
          enqueue(item('low', { priority: -1 })),
          enqueue(item('other'), { queue: 'bulk' }),
        ])
        now += 1
        const first = await one.claim(ask(2))
        expect(first.items.map(({ lease }) => lease.id)).toEqual(['urgent', 'b'])
        expect(first).toMatchObject({ more: true, nextDueAt: START + 2, at: START + 1 })

        now += 1
        const second = await one.claim(
          ask(9, {
            from: [
              { queue: 'default', max: 9 },
              { queue: 'bulk', max: 9 },
            ],
          }),
        )
        expect(second.items.map(({ lease }) => lease.id)).toEqual(['a', 'late', 'low', 'other'])
        expect(second.more).toBe(false)
        expect(second.nextDueAt).toBeUndefined()
      })

      it('marks the first ones as started, and counts a lapse of those as a crash', async () => {
        await one.commit(times(3, (i) => enqueue(item(`i${i}`))))
        const first = await one.claim(ask(3, { startNow: 1, leaseMs: 100 }))
        expect(first.items.map(({ started }) => started)).toEqual([true, false, false])

        now += 100
        const second = await one.claim(ask(3))

        expect(
          second.items.map(({ lease, lapses, crashes, deliveries }) => [lease.fence, lapses, crashes, deliveries]),
        ).toEqual([
          [2, 1, 1, 2],
          [2, 1, 0, 2],
          [2, 1, 0, 2],
        ])
        expect(kinds(await two.commit(first.items.map((claimed) => finish(claimed))))).toEqual(times(3, () => 'stale'))
      })

      it('never shares an item with a claim of another connection', async () => {
        await one.commit(times(400, (i) => enqueue(item(`i${i}`))))
        const taken: string[] = []
        const drain = async (by: Tracer) => {
          for (;;) {
            const { items, more } = await by.claim(ask(7))
            taken.push(...items.map(({ lease }) => lease.id))
            if (items.length === 0 && !more) return
          }
        }
        await Promise.all([drain(one), drain(two)])
        await drain(one)

        expect(taken.length).toBe(400)
        expect(new Set(taken).size).toBe(400)
      })
    })

    describe('a settlement', () => {
      it('that is repeated after a lost reply answers repeated and has no second effect', async () => {
        const [a, b, c] = await running(['a', 'b', 'c'], { groupId: 'g' })
        const batch = [
          finish(a!, [contribute('g', '1'), ...children(a!, [item('a1')])], '"ok"'),
          park(b!),
          retry(c!, 50),
        ]
        const first = await one.commit(batch)
        const again = await two.commit(batch)

        expect(kinds(first)).toEqual(applied(3))
        expect(again).toEqual(['a', 'b', 'c'].map((id) => ({ kind: 'repeated', id })))
        expect((await one.groups(['g']))[0]).toEqual({ open: 2, value: '1', final: false, version: 1 })
        expect(await view('a')).toMatchObject({ status: 'success', ending: 'done', result: '"ok"', endAt: START })
        expect(await view('b')).toMatchObject({ status: 'dead', ending: 'exhausted', error: 'Error: boom' })
        expect(await view('c')).toMatchObject({ status: 'pending', dueAt: START + 50, envelope: { attempt: 2 } })
      })

      it('repeated inside one batch is applied once', async () => {
        const [a] = await running(['a'])

        expect(await one.commit([finish(a!), finish(a!)])).toEqual([
          { kind: 'applied', closed: [{ groupId: 'a' }] },
          { kind: 'repeated', id: 'a' },
        ])
      })

      it('with a stale token has no effect, and its neighbours have theirs', async () => {
        const [a, b, c] = await running(['a', 'b', 'c'], { groupId: 'g' })
        const forged = { ...b!, lease: { ...b!.lease, token: 'forged' } }
        const results = await one.commit([
          finish(a!),
          finish(forged, [contribute('g', 'forged'), ...children(b!, [item('b1')]), ...gate(item('b2'), ['a'])]),
          finish(c!, [contribute('g', 'true')]),
        ])

        expect(kinds(results)).toEqual(['applied', 'stale', 'applied'])
        expect((await one.groups(['g']))[0]).toEqual({ open: 1, value: 'true', final: false, version: 1 })
        expect(await one.read(['b1', 'b2'])).toEqual([undefined, undefined])
        expect(await view('b')).toMatchObject({ status: 'running' })
        expect(kinds(await one.commit([finish(b!)]))).toEqual(['applied'])
      })

      it('retries: pending with its attempt, not before its time, with a new fence', async () => {
        const [a] = await running(['a'])
        await one.commit([retry(a!, 1_000)])

        expect(await one.claim(ask(1))).toMatchObject({ items: [], more: false, nextDueAt: START + 1_000 })
        now += 1_000
        const [again] = (await two.claim(ask(1))).items
        expect(again).toMatchObject({
          lease: { fence: 2 },
          lapses: 0,
          envelope: { attempt: 2, startAt: START + 1_000 },
        })
        expect(await open('a')).toBe(1)
      })

      it('is still known as repeated when the next run has begun', async () => {
        const [a] = await running(['a'])
        await one.commit([retry(a!, 0)])
        const [next] = (await two.claim(ask(1))).items

        expect(await one.commit([retry(a!, 0)])).toEqual([{ kind: 'repeated', id: 'a' }])
        expect(kinds(await two.commit([finish(next!)]))).toEqual(['applied'])
      })

      it('of a lease that has lapsed and was claimed by another is stale', async () => {
        const [a] = await running(['a'])
        now += 30_000
        const [b] = (await two.claim(ask(1))).items

        expect(kinds(await one.commit([finish(a!)]))).toEqual(['stale'])
        expect(kinds(await two.commit([finish(b!)]))).toEqual(['applied'])
      })
    })

    describe('a group', () => {
      it('of a root alone closes with it and keeps its value', async () => {
        const [a] = await running(['a'])

        const results = await one.commit([finish(a!, [contribute('a', '7')])])

        expect(results).toEqual([{ kind: 'applied', closed: [{ groupId: 'a', value: '7' }] }])
        expect((await one.groups(['a']))[0]).toEqual({ open: 0, value: '7', final: false, version: 1 })
      })

      it('of a root with children stays open until the last of them ends', async () => {
        const [a] = await running(['a'])
        const one1 = await one.commit([finish(a!, [contribute('a', '1'), ...children(a!, [item('b'), item('c')])])])
        expect(closedBy(one1)).toEqual([])
        expect((await one.groups(['a']))[0]).toEqual({ open: 2, value: '1', final: false, version: 1 })
        const [b, c] = (await one.claim(ask(2))).items

        expect(closedBy(await one.commit([finish(b!)]))).toEqual([])
        expect(closedBy(await one.commit([park(c!)]))).toEqual([{ groupId: 'a', value: '1' }])
      })

      it('that an outsider joins while its root is alone stays open until both have ended', async () => {
        const [a] = await running(['a'])
        await two.commit([enqueue(item('guest', { groupId: 'a' }))])
        expect(await open('a')).toBe(2)

        expect(closedBy(await one.commit([finish(a!)]))).toEqual([])
        const [guest] = (await one.claim(ask(1))).items
        expect(closedBy(await one.commit([finish(guest!)]))).toEqual([{ groupId: 'a' }])
      })

      it('closed by 100 settlements of one batch is closed once, with an exact count', async () => {
        const all = await running(
          times(100, (i) => `i${i}`),
          { groupId: 'g' },
        )
        expect(await open('g')).toBe(100)

        const results = await one.commit(all.map((claimed, i) => finish(claimed, [contribute('g', String(i))])))

        expect(kinds(results)).toEqual(applied(100))
        expect(results.map((r) => (r.kind === 'applied' ? r.closed.length : 0))).toEqual([...times(99, () => 0), 1])
        expect(closedBy(results)).toEqual([{ groupId: 'g', value: '99' }])
        expect((await one.groups(['g']))[0]).toEqual({ open: 0, value: '99', final: false, version: 100 })
      })

      it('that has closed is not closed again, unless it was opened again', async () => {
        const [a, b] = await running(['a', 'b'])
        const more = (groupId: string, by: number) =>
          ({ do: by > 0 ? 'openGroup' : 'closeGroup', groupId, by: 1 }) as const
        await one.commit([finish(a!)])

        expect(closedBy(await one.commit([finish(b!, [more('a', -1), more('a', 1), more('g', -1)])]))).toEqual([
          { groupId: 'b' },
        ])
        await one.commit([enqueue(item('guest', { groupId: 'a' }))])
        const [guest] = (await one.claim(ask(1))).items
        expect(closedBy(await one.commit([finish(guest!)]))).toEqual([{ groupId: 'a' }])
      })

      it('keeps the first final value', async () => {
        const [a, b, c] = await running(['a', 'b', 'c'], { groupId: 'g' })
        await one.commit([
          finish(a!, [contribute('g', '1')]),
          finish(b!, [contribute('g', '2', true)]),
          finish(c!, [contribute('g', '3', true)]),
        ])

        expect((await one.groups(['g']))[0]).toEqual({ open: 0, value: '2', final: true, version: 2 })
      })

      it('whose version moved answers conflict with what it is now, and nothing of that settlement happens', async () => {
        const [a, b] = await running(['a', 'b'], { groupId: 'g' })
        const results = await one.commit([
          finish(a!, [contribute('g', '[1]', false, 0)]),
          finish(b!, [contribute('g', '[2]', false, 0), ...children(b!, [item('c')])]),
          enqueue(item('c')),
        ])

        expect(results).toEqual([
          { kind: 'applied', closed: [] },
          { kind: 'conflict', groupId: 'g', now: { value: '[1]', final: false, version: 1 } },
          { kind: 'applied', closed: [] },
        ])
        expect(await view('c')).toMatchObject({ envelope: { groupId: 'c' } })
        expect(await open('g')).toBe(1)
        const again = await two.commit([finish(b!, [contribute('g', '[1,2]', false, 1)])])
        expect(closedBy(again)).toEqual([{ groupId: 'g', value: '[1,2]' }])
      })

      it('folds every append exactly once when two connections append at the same time', async () => {
        const all = await running(
          times(60, (i) => `i${i}`),
          { groupId: 'g' },
        )
        const append = async (by: Tracer, claimed: Claimed) => {
          for (let known = { value: '0', version: 0 }; ; ) {
            const [result] = await by.commit([
              finish(claimed, [contribute('g', String(Number(known.value) + 1), false, known.version)]),
            ])
            if (result?.kind !== 'conflict') return
            known = { value: result.now.value ?? '0', version: result.now.version }
          }
        }
        await Promise.all(all.map((claimed, i) => append(i % 2 === 0 ? one : two, claimed)))

        expect((await one.groups(['g']))[0]).toEqual({ open: 0, value: '60', final: false, version: 60 })
      })

      it('does not count a child that exists already', async () => {
        const [a] = await running(['a'])
        await one.commit([enqueue(item('child'), { queue: 'bulk' })])

        const results = await one.commit([finish(a!, children(a!, [item('child')]))])

        expect(closedBy(results)).toEqual([{ groupId: 'a' }])
      })
    })

    describe('a gate', () => {
      /** What its held item was told, or `held`. */
      const verdict = async () => {
        const held = await view('held')
        if (held?.hold !== undefined) return 'held'
        const [claimed] = (await one.claim(ask(1))).items
        expect(claimed?.lease.id).toBe('held')
        return claimed?.gate
      }

      it('counts members that had ended before it, that end in its batch and that end later', async () => {
        const [before, dead, same, after, opener] = await running(['before', 'dead', 'same', 'after', 'opener'])
        await one.commit([finish(before!), park(dead!)])
        await one.commit([
          finish(same!),
          finish(opener!, gate(item('held'), ['before', 'dead', 'same', 'after', 'opener'], 5, 'done')),
        ])
        expect(await verdict()).toBe('held')

        // A member that was enqueued without a word of the gate: the ledger knows who waits for it.
        await two.commit([finish(after!)])
        expect(await verdict()).toEqual({ met: true })
      })

      it('frees its item once, when its members and it come in one settlement', async () => {
        const [root] = await running(['root'])
        const key = 'gate held'
        await one.commit([
          finish(root!, [
            ...children(root!, [item('m1', { gates: [key] }), item('m2', { gates: [key] })]),
            ...gate(item('held', { groupId: 'root' }), ['m1', 'm2']),
          ]),
        ])
        const [m1, m2] = (await one.claim(ask(9))).items
        expect(await open('root')).toBe(3)
        await one.commit([finish(m1!), finish(m2!)])

        const [held, ...others] = (await one.claim(ask(9))).items
        expect(held).toMatchObject({ lease: { id: 'held', fence: 1 }, gate: { met: true } })
        expect(others).toEqual([])
        expect(closedBy(await one.commit([finish(held!)]))).toEqual([{ groupId: 'root' }])
      })

      it.each([
        {
          says: 'is impossible as soon as too many members are dead',
          need: 2,
          dead: 2,
          ok: 0,
          verdict: { met: false },
        },
        { says: 'is met as soon as enough members succeeded', need: 2, dead: 1, ok: 2, verdict: { met: true } },
        { says: 'is undecided before either', need: 2, dead: 1, ok: 1, verdict: 'held' },
      ])('$says', async ({ need, dead, ok, verdict: expected }) => {
        const members = await running(['m1', 'm2', 'm3'])
        await one.commit([
          { guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['m1', 'm2', 'm3'], need) },
        ])
        const ends = members.map((member, i) => (i < dead ? park(member) : i < dead + ok ? finish(member) : undefined))
        await one.commit(ends.filter((end): end is Settlement => end !== undefined))

        expect(await verdict()).toEqual(expected)
      })

      it('that can never be met by its members frees its item at once, and so does one that needs none', async () => {
        await one.commit([
          { guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['x'], 2) },
          { guard: { by: 'absent', id: 'free' }, effects: gate(item('free'), [], 0) },
        ])

        const { items } = await one.claim(ask(9))
        expect(items.map((claimed) => [claimed.lease.id, claimed.gate])).toEqual([
          ['held', { met: false }],
          ['free', { met: true }],
        ])
      })

      it('counts a member once, however often it is told', async () => {
        const [m1, m2] = await running(['m1', 'm2'])
        await one.commit([
          { guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['m1', 'm2'], 2, 'done') },
        ])
        const tell = { do: 'tellGate', key: 'gate held', member: 'm1', ok: true } as const
        await one.commit([finish(m1!, [tell, tell])])
        expect(await verdict()).toBe('held')

        await one.commit([finish(m2!)])
        expect(await verdict()).toEqual({ met: true })
      })

      it('waits for members that come later, also for those that do not know of it', async () => {
        await one.commit([{ guard: { by: 'absent', id: 'held' }, effects: gate(item('held'), ['m1', 'm2']) }])
        const [m1, m2] = await running(['m1', 'm2'])
        await one.commit([finish(m1!)])
        expect(await verdict()).toBe('held')

        await two.commit([finish(m2!)])
        expect(await verdict()).toEqual({ met: true })
      })

      it('whose time runs out lets its item go without a word', async () => {
        const [m1] = await running(['m1'])
        const [held, ...rest] = gate(item('held'), ['m1']) as [ReturnType<typeof push>]
        await one.commit([{ guard: { by: 'absent', id: 'held' }, effects: [{ ...held, delayMs: 500 }, ...rest] }])
        expect(await one.claim(ask(1))).toMatchObject({ items: [], nextDueAt: START + 500 })

        now += 500
        const [claimed] = (await one.claim(ask(1))).items
        expect(claimed).toMatchObject({ lease: { id: 'held' } })
        expect(claimed?.gate).toBeUndefined()
        await one.commit([finish(m1!)])
        expect(kinds(await one.commit([finish(claimed!)]))).toEqual(['applied'])
      })
    })

    describe('two connections', () => {
      it('settling over the same groups and gates in opposite order neither deadlock nor miscount', async () => {
        const GROUPS = 6
        const EACH = 10
        for (let round = 0; round < 12; round++) {
          const name = (what: string, i: number) => `${round}-${what}${i}`
          // Each group's items are shared out between the two; each gate waits for items of all groups.
          const ids = times(GROUPS * EACH, (i) => name('i', i))
          await one.commit(ids.map((id, i) => enqueue(item(id, { groupId: name('g', i % GROUPS) }))))
          await one.commit(
            times(GROUPS, (g) => ({
              guard: { by: 'absent', id: name('held', g) },
              effects: gate(
                item(name('held', g)),
                ids.filter((_, i) => i % (g + 2) === 0),
                undefined,
                'done',
              ),
            })),
          )
          const { items } = await one.claim(ask(ids.length))
          const mine = items.filter((_, i) => i % 2 === 0).map((claimed) => finish(claimed))
          const theirs = items.filter((_, i) => i % 2 === 1).map((claimed) => park(claimed))
          const results = await Promise.all([
            one.commit(mine),
            two.commit(theirs.toReversed()),
            // The same again, from the other side, while the first is on its way: a reply that seemed lost.
            two.commit(mine.toReversed()),
            one.commit(theirs),
          ])

          expect(kinds(results.flat()).filter((kind) => kind === 'applied').length).toBe(ids.length)
          expect(kinds(results.flat()).filter((kind) => kind === 'repeated').length).toBe(ids.length)
          const closed = closedBy(results.flat()).map(({ groupId }) => groupId)
          expect(closed.toSorted()).toEqual(times(GROUPS, (g) => name('g', g)).toSorted())
          const freed = (await one.claim(ask(99))).items
          expect(freed.map(({ lease, gate: told }) => [lease.id, told]).toSorted()).toEqual(
            times(GROUPS, (g) => [name('held', g), { met: true }]).toSorted(),
          )
          await one.commit(freed.map((claimed) => finish(claimed)))
        }
      })

      it('opening gates over items that the other is ending at that moment count each exactly once', async () => {
        for (let round = 0; round < 25; round++) {
          const ids = times(12, (i) => `${round}-${i}`)
          const members = await running(ids)
          const holding = times(4, (i) => `${round}-held${i}`)
          await Promise.all([
            one.commit(members.slice(0, 6).map((claimed) => finish(claimed))),
            two.commit(
              holding.map((id) => ({ guard: { by: 'absent', id }, effects: gate(item(id), ids.toReversed()) })),
            ),
            one.commit(members.slice(6).map((claimed) => finish(claimed))),
          ])

          const freed = (await one.claim(ask(99))).items
          expect(freed.map(({ lease }) => lease.id).toSorted()).toEqual(holding.toSorted())
          expect(freed.map((claimed) => claimed.gate)).toEqual(times(4, () => ({ met: true })))
          await one.commit(freed.map((claimed) => finish(claimed)))
        }
      })
    })

    it('opens gates while their members are pushed, run and finished, and loses none', async () => {
      const gates = await store.open(() => now)
      for (let round = 0; round < 40; round++) {
        const ids = times(5, (i) => `${round}-m${i}`)
        const live = async () => {
          await one.commit(ids.map((id) => enqueue(item(id, { priority: 1 }))))
          for (let left = ids.length; left > 0; ) {
            const { items } = await two.claim(ask(left))
            left -= items.length
            await two.commit(items.map((claimed) => finish(claimed)))
          }
        }
        await Promise.all([
          live(),
          gates.commit([
            { guard: { by: 'absent', id: `${round}-held` }, effects: gate(item(`${round}-held`), ids.toReversed()) },
          ]),
        ])

        const { items } = await one.claim(ask(9))
        expect(items.map((claimed) => [claimed.lease.id, claimed.gate])).toEqual([[`${round}-held`, { met: true }]])
        await one.commit(items.map((claimed) => finish(claimed)))
      }
      await gates.close()
    })

    it('takes one round trip for each verb, whatever the size of the batch', async () => {
      const trips = async (run: () => Promise<unknown>) => {
        const before = one.roundTrips()
        await run()
        return one.roundTrips() - before
      }
      let items: readonly Claimed[] = []
      // The first use of a connection is not counted: it greets the server and teaches it the scripts.
      await one.commit([enqueue(item('warm'))])
      await one.commit((await one.claim(ask(1))).items.map((claimed) => finish(claimed)))
      expect(await trips(() => one.commit(times(100, (i) => enqueue(item(`i${i}`)))))).toBe(1)
      expect(
        await trips(async () => {
          items = (await one.claim(ask(100))).items
        }),
      ).toBe(1)
      const ids = items.map(({ lease }) => lease.id)
      const batch = items.map((claimed, i) =>
        finish(claimed, [
          contribute('sum', String(i)),
          ...children(claimed, [item(`${claimed.lease.id}-child`)]),
          ...gate(item(`${claimed.lease.id}-held`), ids),
        ]),
      )
      expect(await trips(async () => expect(kinds(await one.commit(batch))).toEqual(applied(100)))).toBe(1)
    })
  })
}

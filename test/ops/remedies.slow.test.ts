import fc from 'fast-check'
import { createWork, defineWork, dependency, memoryBackend, priorityDoer, type WorkSystem } from 'millrace'
import { openOps, type Reason } from 'millrace/ops'
import { expect, it } from 'vitest'
import { findLedger } from '../../src/ports/find-ledger.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import { act } from '../../src/work/control/item-actions.js'

const TYPES = ['quick', 'slow', 'flaky', 'poison', 'rare'] as const
type Type = (typeof TYPES)[number]

/** What is done to a system before the test asks why. */
type Step =
  | { readonly do: 'enqueue'; readonly type: Type; readonly delay: number; readonly deadline: boolean }
  | { readonly do: 'rush'; readonly count: number }
  | { readonly do: 'gate'; readonly on: readonly number[]; readonly isAbsent: boolean }
  | { readonly do: 'start'; readonly knows: 'most' | 'all' }
  | { readonly do: 'stop' }
  | { readonly do: 'pause'; readonly what: 'queue' | 'type'; readonly type: Type }
  | { readonly do: 'requestCancel'; readonly which: number }
  | { readonly do: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('enqueue' as const),
      type: fc.constantFrom(...TYPES),
      delay: fc.constantFrom(0, 0, 30_000, 600_000),
      deadline: fc.boolean(),
    }),
  },
  // More than the workers have room for, even with what they have claimed ahead.
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rush' as const), count: fc.integer({ min: 4, max: 10 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('gate' as const),
      on: fc.array(fc.nat(9), { minLength: 1, maxLength: 3 }),
      isAbsent: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), knows: fc.constantFrom('most', 'all') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pause' as const),
      what: fc.constantFrom('queue', 'type'),
      type: fc.constantFrom(...TYPES),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('requestCancel' as const), which: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(10, 5_000, 45_000) }) },
)

/** A system with its people, and what is true of it, kept by the test itself. */
class Town {
  readonly clock = new FakeClock()
  readonly backend = memoryBackend({ clock: this.clock })
  readonly ops = openOps(this.backend, { clock: this.clock })
  readonly ids: string[] = []
  readonly paused = new Set<string>()
  readonly workers: { readonly w: WorkSystem; readonly knows: ReadonlySet<string>; isUp: boolean }[] = []
  isMended = false
  readonly #clerk = createWork({ backend: this.backend, clock: this.clock, work: [], autoStart: false })
  readonly #ledger = findLedger(this.backend, [], { prefix: 'work:' }, () => {
    throw new Error('the memory backend has a ledger')
  }).ledger

  readonly #work = {
    quick: defineWork('quick', (_: null, ctx) => ctx.void()),
    slow: defineWork('slow', async (_: null, ctx) => {
      await this.clock.sleep(40_000)
      return ctx.void()
    }),
    flaky: defineWork('flaky', async (_: null, ctx) => {
      if (!this.isMended) throw new Error('not yet')
      return ctx.void()
    }),
    poison: defineWork('poison', async (_: null, ctx) => {
      if (!this.isMended) throw Object.assign(new Error('never'), { status: 400 })
      return ctx.void()
    }),
    rare: defineWork('rare', (_: null, ctx) => ctx.void()),
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'enqueue': {
        const timeout = step.deadline ? { timeout: 20_000 } : {}
        await this.#add(this.#clerk.enqueue(this.#work[step.type](null), { delay: step.delay, ...timeout }))
        return
      }
      case 'rush':
        for (let n = 0; n < step.count; n += 1) await this.#add(this.#clerk.enqueue(this.#work.slow(null)))
        await this.clock.advance(10)
        return
      case 'gate': {
        const on = step.on.flatMap((n) => this.ids[n % Math.max(1, this.ids.length)] ?? [])
        const absent = step.isAbsent || on.length === 0 ? [`absent-${this.ids.length}`] : []
        const gate = dependency({
          on: [...new Set(on), ...absent],
          queue: [this.#work.quick(null)],
          config: 'all-done',
        })
        await this.#add(this.#clerk.enqueue(gate))
        return
      }
      case 'start':
        await this.start(step.knows === 'all' ? TYPES : TYPES.filter((type) => type !== 'rare'))
        return
      case 'stop': {
        const up = this.workers.find(({ isUp }) => isUp)
        if (up === undefined) return
        up.isUp = false
        // Its runs are not notified of that, and their leases have to lapse.
        const stopped = up.w.stop()
        await this.clock.advance(6_000)
        await stopped
        // Until then it is not known to be gone.
        await this.clock.advance(61_000)
        return
      }
      case 'pause':
        await this.#clerk.pause(step.what === 'queue' ? { queue: 'default' } : { type: step.type })
        this.paused.add(step.what === 'queue' ? 'queue default' : `type ${step.type}`)
        return
      case 'requestCancel': {
        const id = this.ids[step.which % Math.max(1, this.ids.length)]
        if (id !== undefined) await this.#clerk.cancel(id, 'by chance')
        return
      }
      case 'wait':
        await this.clock.advance(step.ms)
        return
    }
  }

  async start(types: readonly Type[]): Promise<void> {
    const work = types.map((type) => this.#work[type])
    const w = createWork({
      backend: this.backend,
      clock: this.clock,
      work,
      doer: priorityDoer({ max: 2 }),
      stopDrain: 0,
      random: () => 0.5,
    })
    this.workers.push({ w, knows: new Set(types), isUp: true })
    await this.clock.advance(10)
  }

  async #add(handle: { accepted(): Promise<{ readonly id: string }> }): Promise<void> {
    this.ids.push((await handle.accepted()).id)
  }

  /** Whether what it says is so, by what the test did. */
  isTrue({ code, text }: Reason, type: string): boolean {
    const up = this.workers.filter(({ isUp }) => isUp)
    switch (code) {
      case 'paused':
        return [...this.paused].some((one) => text.startsWith(`The ${one.replace(/ (.*)$/, ' "$1"')} is paused`))
      case 'no-worker':
        return up.length === 0
      case 'unknown-type':
        return up.length > 0 && up.every(({ knows }) => !knows.has(type))
      case 'waiting':
      case 'running':
      case 'taken':
        return up.length > 0
      default:
        return true
    }
  }

  /** Does what the remedy says. */
  async follow({ code, text, remedy }: Reason, id: string): Promise<void> {
    const [view] = await this.#ledger.read([id])
    switch (code) {
      case 'paused': {
        const [, what, name = ''] = /^Resume the (queue|type) "(.*)": /.exec(remedy) ?? []
        await this.#clerk.resume(what === 'queue' ? { queue: name } : { type: name })
        this.paused.delete(`${what} ${name}`)
        return
      }
      case 'no-worker':
        return this.start(TYPES.filter((type) => type !== 'rare'))
      case 'unknown-type':
        return this.start(TYPES)
      case 'gate': {
        const [, absent] = /^Enqueue (.+?), or cancel it/.exec(remedy) ?? []
        if (absent !== undefined) {
          for (const one of absent.split(', '))
            await this.#clerk.enqueue({ id: one, type: 'quick', input: null } as never).accepted()
          return
        }
        const [, other = ''] = /Find out why (\S+) has not ended/.exec(remedy) ?? []
        const [why] = await this.ops.explain(other)
        return this.follow(why, other)
      }
      case 'dead': {
        this.isMended = true
        const redrive = act(view!, 'redrive', { who: 'test', why: '', keep: { completedMs: 1e9, deadMs: 1e9 } })
        await this.#ledger.commit([redrive!])
        return
      }
      case 'scheduled':
      case 'retrying': {
        await this.clock.advance(Math.max(0, (view?.dueAt ?? 0) - this.clock.now()) + 10)
        return
      }
      case 'lease-lapsed':
        if (!this.workers.some(({ isUp }) => isUp)) await this.start(TYPES)
        await this.clock.advance(5_000)
        return
      case 'waiting':
      case 'running':
      case 'taken':
      case 'stopping':
      case 'deadline':
        await this.clock.advance(60_000)
        return
      case 'completed':
      case 'cancelled':
        // The item may have ended meanwhile.
        return
      case 'limit':
      case 'unknown':
        throw new Error(`${code} cannot be here: ${text}`)
    }
  }

  async close(): Promise<void> {
    for (const { w, isUp } of this.workers) if (isUp) void w.stop()
    await this.clock.advance(50_000)
  }
}

const MOST_REMEDIES = 25
/** What chance brings about often enough: a run without one of these has tried less than it says. */
const USUAL = ['dead', 'gate', 'no-worker', 'paused', 'retrying', 'running', 'scheduled', 'unknown-type', 'waiting']

it('the first reason is true, and following only its remedy brings every item to its end', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const town = new Town()
      try {
        for (const one of steps) await town.take(one)
        for (const id of town.ids) {
          const told: string[] = []
          for (;;) {
            const report = await town.ops.item(id)
            const [reason] = await town.ops.explain(id)
            if (reason.code === 'completed' || reason.code === 'cancelled') break
            seen.add(reason.code)
            told.push(`${reason.text} ${reason.remedy}`)
            expect(town.isTrue(reason, report?.type ?? ''), reason.text).toBe(true)
            expect(told.length, told.join('\n')).toBeLessThan(MOST_REMEDIES)
            await town.follow(reason, id)
          }
        }
      } finally {
        await town.close()
      }
    }),
    { numRuns: 300 },
  )
  expect([...seen]).toEqual(expect.arrayContaining(USUAL))
})

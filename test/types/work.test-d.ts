import { createWork } from '../../src/index.js'
import type { WorkSystem } from '../../src/work/create-work.js'
import { type BatchConfig, defineBatchWork } from '../../src/work/define/define-batch-work.js'
import { defineContract } from '../../src/work/define/define-contract.js'
import { defineWork } from '../../src/work/define/define-work.js'
import { dependency } from '../../src/work/define/dependency.js'
import type {
  GroupOfBuilder,
  GroupOfItem,
  InputForName,
  InputOf,
  SelfForName,
  SelfOf,
  WorkContext,
  WorkHandle,
} from '../../src/work/define/work.js'
import type { BatchOutcome } from '../../src/work/run/batch-outcome.js'
import type { Equal, Expect } from './equal.js'

type Both<B, S, G> = Equal<SelfOf<B>, S> extends true ? Equal<GroupOfBuilder<B>, G> : false

const ln = defineWork('ln', (_: void, ctx) => ctx.result(1 as number))
const ls = defineWork('ls', (_: void, ctx) => ctx.result('s' as string))
const lb = defineWork('lb', (_: void, ctx) => ctx.result(true as boolean))
const lg = defineWork('lg', (_: void, ctx) => ctx.result(1n as bigint))
const lo = defineWork('lo', (_: void, ctx) => ctx.result({ o: 1 as number }))
const add = defineWork('add', (i: { a: number; b: number }, ctx) => ctx.result(i.a + i.b))
const greet = defineWork('greet', (i: { name: string }, ctx) => ctx.result(`hi ${i.name}`))

export type T1 = Expect<Both<typeof add, number, number>>

const awaited = defineWork('awaited', (_: void, ctx) => ctx.result(Promise.resolve({ o: 1 as number })))
export type T1b = Expect<Both<typeof awaited, { o: number }, { o: number }>>

const nothing = defineWork('nothing', (_: void, ctx) => ctx.void())
export type T2 = Expect<Both<typeof nothing, void, never>>

const both = defineWork('both', (_: void, ctx) => ctx.queue([add({ a: 1, b: 2 }), greet({ name: 'x' })]))
export type T3 = Expect<Both<typeof both, void, number | string>>

const chained = defineWork('chained', (_: void, ctx) => ctx.queue([add({ a: 1, b: 2 })]).next([greet({ name: 'x' })]))
export type T4 = Expect<Equal<GroupOfBuilder<typeof chained>, number | string>>

const nested = defineWork('nested', (_: void, ctx) => ctx.queue([ln(), ctx.queue([ls(), ctx.queue([lb()])])]))
export type T5 = Expect<Both<typeof nested, void, number | string | boolean>>

const mixed = defineWork('mixed', (_: void, ctx) => ctx.queue([ln(), ctx.result('x' as string), ctx.void()]))
export type T6 = Expect<Equal<GroupOfBuilder<typeof mixed>, number | string>>

const links = defineWork('links', (_: void, ctx) => ctx.queue([ln()]).next([ls()]).next([lb()], 'all-done'))
export type T7 = Expect<Equal<GroupOfBuilder<typeof links>, number | string | boolean>>

const counted = defineWork('counted', (_: void, ctx) =>
  ctx.queue(ln()).next(ctx.queue([ls(), lb()]), { count: 1, of: 'success' }),
)
export type T8 = Expect<Equal<GroupOfBuilder<typeof counted>, number | string | boolean>>

const left = defineWork('left', (_: void, ctx) => ctx.queue([ln(), ls()]))
const right = defineWork('right', (_: void, ctx) => ctx.queue([lb(), lg()]))
const conductor = defineWork('conductor', (_: void, ctx) => ctx.queue([left(), right()]).next([lo()]))
export type T9 = Expect<Equal<GroupOfBuilder<typeof conductor>, number | string | boolean | bigint | { o: number }>>

declare const w: WorkSystem<readonly [typeof add, typeof greet, typeof nested, typeof lg]>
export async function t9(): Promise<void> {
  const value = await w.enqueue(nested())
  // @ts-expect-error the value of a group is that of its own work, not of everything that is registered
  const wrong: bigint = value
  void wrong
}

const finalThenMore = defineWork('finalThenMore', (_: void, ctx) =>
  ctx.result(42 as number, { final: true }).next([ls()]),
)
export type T10 = Expect<Both<typeof finalThenMore, number, number | string>>

export const t11 = defineWork('t11', (_: void, ctx) =>
  ctx.result(1 as number, {
    append: (existing) => {
      const check: Expect<Equal<typeof existing, number | undefined>> = true
      void check
      return (existing ?? 0) + 1
    },
  }),
)

const twice = defineWork('twice', (_: void, ctx) => ctx.queue([ln(), ln(), add({ a: 1, b: 1 })]))
export type T12 = Expect<Equal<GroupOfBuilder<typeof twice>, number>>

type Registry = readonly [typeof add, typeof greet]
export type T13 = Expect<Equal<InputForName<Registry, 'greet'>, { name: string }>>
export type T13b = Expect<Equal<SelfForName<Registry, 'add'>, number>>

export function t14(): void {
  // @ts-expect-error b is missing
  add({ a: 1 })
  // @ts-expect-error not a registered name
  void w.enqueue('nope', {})
  // @ts-expect-error a must be a number
  void w.enqueue('add', { a: 'x', b: 2 })
}

declare const ok: boolean
const maybe = defineWork('maybe', (_: void, ctx) => (ok ? ctx.result(1 as number) : ctx.void()))
export type T15 = Expect<Both<typeof maybe, number | void, number>>

const either = defineWork('either', (_: void, ctx) => (ok ? ctx.result(1 as number) : ctx.result('s' as string)))
export type T16 = Expect<Equal<SelfOf<typeof either>, number | string>>

const leaf = defineWork('leaf', (i: { id: string }, ctx) => ctx.result(i.id.length))
const fan = defineWork('fan', (i: { ids: string[] }, ctx) => ctx.queue(i.ids.map((id) => leaf({ id }))))
export type T17 = Expect<Equal<GroupOfBuilder<typeof fan>, number>>

const thrower = defineWork('thrower', () => {
  throw new Error('always')
})
export type T19 = Expect<Equal<SelfOf<typeof thrower>, unknown>>

export const t20 = defineWork('t20', (i: { to: string }, ctx) => ctx.result(i.to), {
  options: (i) => ({ group: i.to }),
  logContext: (i) => {
    const check: Expect<Equal<typeof i, { to: string }>> = true
    return { check }
  },
})
export type T20 = Expect<Equal<InputOf<typeof t20>, { to: string }>>

export function t21(): void {
  const system = createWork({ work: [add, greet] })
  const handle = system.enqueue('add', { a: 1, b: 2 })
  const check: Expect<Equal<typeof handle, WorkHandle<number, number>>> = true
  void check
  // @ts-expect-error a name that is not registered, without `as const`
  void system.enqueue('nope', {})
}

export async function instances(): Promise<void> {
  const handle = w.enqueue(add({ a: 1, b: 2 }))
  const own: number = await handle.result()
  const value: number = await handle
  void own
  void value
}

export const contextIsTyped = defineWork('contextIsTyped', (_: void, ctx: WorkContext) => {
  const signal: AbortSignal = ctx.signal
  void signal
  return ctx.void()
})

// Batched types: the output is the result, and contributes unless it is nothing.
const doubled = defineBatchWork('doubled', {
  size: 2,
  maxWait: 1,
  run: (inputs: readonly { n: number }[]) => inputs.map(({ n }) => (n > 0 ? n : undefined)),
})
export type BatchInput = Expect<Equal<InputOf<typeof doubled>, { n: number }>>
export type BatchSelf = Expect<Equal<SelfOf<typeof doubled>, number | undefined>>
export type BatchGroup = Expect<Equal<GroupOfBuilder<typeof doubled>, number>>

// Outcomes of items are not part of the result: it is what was given to `ok`, or returned as it is.
const judged = defineBatchWork('judged', {
  size: 2,
  maxWait: 1,
  run: async (inputs: readonly { n: number }[], { ok, fail }) =>
    inputs.map(({ n }) => (n > 0 ? ok(n) : fail(new Error('negative')))),
})
export type JudgedInput = Expect<Equal<InputOf<typeof judged>, { n: number }>>
export type JudgedSelf = Expect<Equal<SelfOf<typeof judged>, number>>
export type JudgedGroup = Expect<Equal<GroupOfBuilder<typeof judged>, number>>
const varied = defineBatchWork('varied', {
  size: 2,
  maxWait: 1,
  run: (inputs: readonly number[], { ok, fail }) =>
    inputs.map((n) => (n > 2 ? `${n}` : n > 1 ? ok({ n }) : n > 0 ? ok() : fail('zero'))),
})
export type VariedSelf = Expect<Equal<SelfOf<typeof varied>, string | { n: number } | undefined>>
export type VariedGroup = Expect<Equal<GroupOfBuilder<typeof varied>, string | { n: number }>>
const branched = defineBatchWork('branched', {
  size: 2,
  maxWait: 1,
  run: async (inputs: readonly number[], { fail }) => {
    if (inputs.length > 1) return inputs.map(() => fail('too many'))
    return inputs.map((n) => `${n}`)
  },
})
export type BranchedSelf = Expect<Equal<SelfOf<typeof branched>, string>>
const promised = defineBatchWork('promised', {
  size: 2,
  maxWait: 1,
  run: (inputs: readonly number[], { ok, fail }) =>
    inputs.map(async (n) => (n > 1 ? ok(Promise.resolve({ n })) : n > 0 ? `${n}` : fail('zero'))),
})
export type PromisedSelf = Expect<Equal<SelfOf<typeof promised>, string | { n: number }>>
const configured: BatchConfig<number, string> = { size: 2, maxWait: 1, run: (inputs) => inputs.map(String) }
const ofConfig = defineBatchWork('of-config', configured)
export type ConfigInput = Expect<Equal<InputOf<typeof ofConfig>, number>>
export type ConfigSelf = Expect<Equal<SelfOf<typeof ofConfig>, string>>
const given = defineBatchWork<'given', number, string | BatchOutcome<string>>('given', {
  size: 2,
  maxWait: 1,
  run: (inputs, { ok, fail }) => inputs.map((n) => (n > 1 ? ok('a') : n > 0 ? 'b' : fail(n))),
})
export type GivenSelf = Expect<Equal<SelfOf<typeof given>, string>>
export const wrong = defineBatchWork<'wrong', number, BatchOutcome<string>>('wrong', {
  size: 2,
  maxWait: 1,
  // @ts-expect-error an outcome carries the output of its type
  run: (inputs, { ok }) => inputs.map((n) => ok(n)),
})

// Gates contribute nothing; trees change nothing about types.
const gated = dependency({ on: ['a'], queue: [doubled({ n: 1 })] })
export type GateGroup = Expect<Equal<GroupOfItem<typeof gated>, never>>
const treed = defineWork('treed', (_: null, ctx) => ctx.queue([doubled({ n: 1 })]).next([gated], { of: 'tree' }))
export type TreeGroup = Expect<Equal<GroupOfBuilder<typeof treed>, number>>
// @ts-expect-error only .next waits for trees
export const noTree = () => dependency({ on: 'a', queue: doubled({ n: 1 }), config: { of: 'tree' } })

// Plain returns.
const plain = defineWork('plain', ({ a, b }: { a: number; b: number }) => a + b)
export type P1 = Expect<Both<typeof plain, number, number>>
const plainAsync = defineWork('plain-async', async (_: void) => ({ o: 1 as number }))
export type P2 = Expect<Both<typeof plainAsync, { o: number }, { o: number }>>
const plainNothing = defineWork('plain-nothing', async (_: void) => {})
export type P3 = Expect<Both<typeof plainNothing, void, never>>
const plainOrMade = defineWork('plain-or-made', (i: boolean, ctx) => (i ? 'text' : ctx.result(1 as number)))
export type P4 = Expect<Both<typeof plainOrMade, 'text' | number, 'text' | number>>
const plainOrQueue = defineWork('plain-or-queue', async (i: boolean, ctx) => {
  if (i) return 'text'
  return ctx.queue([add({ a: 1, b: 2 })])
})
export type P5 = Expect<Both<typeof plainOrQueue, 'text' | void, 'text' | number>>
const perhaps = defineWork('perhaps', (i: number) => (i > 0 ? i : undefined))
export type P6 = Expect<Both<typeof perhaps, number | undefined, number>>

// Contracts.
const send = defineContract('send').takes<{ to: string }>().returns<{ sent: number }>()
export type C1 = Expect<Equal<InputOf<typeof send>, { to: string }>>
export type C2 = Expect<Equal<SelfOf<typeof send>, { sent: number }>>
const sent = defineWork(send, ({ to }) => ({ sent: to.length }))
export type C3 = Expect<Equal<InputOf<typeof sent>, { to: string }>>
// @ts-expect-error: the contract says what its result is.
defineWork(send, ({ to }) => to)
// @ts-expect-error: retries are decided where items are added.
defineWork(send, () => ({ sent: 1 }), { retry: { attempts: 3 } })
const web = createWork({ autoStart: false, work: [send] })
const sentHandle = web.enqueue('send', { to: 'ada' })
export type C4 = Expect<Equal<Awaited<ReturnType<typeof sentHandle.result>>, { sent: number }>>
// @ts-expect-error: not its input.
web.enqueue('send', { from: 'ada' })

// The results of what came before.
const glue = defineWork('glue', (i: { n: number; s: string; all: readonly (number | string)[] }) => i.n)
const fannedIn = defineWork('fanned-in', (_: void, ctx) =>
  ctx.queue([ln(), ls()]).next((done) => glue({ n: done[0], s: done[1], all: done })),
)
export type F1 = Expect<Equal<GroupOfBuilder<typeof fannedIn>, number | string>>
export const wrongFan = defineWork('wrong-fan', (_: void, ctx) =>
  // @ts-expect-error: the first result is a number.
  ctx.queue([ln(), ls()]).next(([n]) => glue({ n: 1, s: n, all: [] })),
)
export const chainedFan = defineWork('chained-fan', (_: void, ctx) =>
  ctx
    .queue([ls()])
    .next(([s]) => [ln(), glue({ n: 1, s, all: [] })])
    .next(([a, b]) => glue({ n: a, s: '', all: [b] })),
)
export const asked = defineWork('asked', async (_: void, ctx) => {
  const [n, s] = await ctx.results([ln, ls])
  return { n, s }
})
export type F2 = Expect<Equal<SelfOf<typeof asked>, { n: number; s: string }>>

// A type may be defined where the system is made.
const inline = createWork({
  autoStart: false,
  work: [defineWork('inline', (n: number) => n), defineWork(send, () => ({ sent: 1 }))],
})
export const inlined: Promise<number> = inline.enqueue('inline', 1).result()
// @ts-expect-error: no such type.
inline.enqueue('outline', 1)

// A list of definitions may be spread before others.
const spread = createWork({ autoStart: false, work: [...[add].map((one) => one), greet] })
void spread.add('greet', { name: 'Ada' })
// @ts-expect-error the input of greet is not that of add
void spread.add('greet', { a: 1, b: 2 })

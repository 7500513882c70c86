import {
  createGuild,
  defineStep,
  type Guild,
  type guild,
  guildClient,
  type LoadedApparatus,
  type Plugin,
  runWithGuild,
  type StartedGuild,
  startGuild,
} from 'millrace/guild'
import clerk, { type ClerkApi, type LinkDoc, type WritDoc, type WritTypeConfig } from 'millrace/guild/clerk'
import fabricator, { type EngineDesign, type EngineRunResult, type FabricatorApi } from 'millrace/guild/fabricator'
import type { Equal, Expect } from './equal.js'

declare const g: StartedGuild
declare const api: ClerkApi
declare const design: EngineDesign

export type T1 = Expect<Equal<Awaited<ReturnType<typeof createGuild>>, StartedGuild>>
export type T2 = Expect<Equal<ReturnType<typeof guild>, Guild>>

const found = g.apparatus<ClerkApi>('clerk')
export type T3 = Expect<Equal<typeof found, ClerkApi>>
const perhaps = g.tryApparatus<FabricatorApi>('fabricator')
export type T4 = Expect<Equal<typeof perhaps, FabricatorApi | null>>
const depth = g.config<{ depth: number }>('oven').depth
export type T5 = Expect<Equal<typeof depth, number>>
const bound = runWithGuild(g, () => 'x' as const)
export type T6 = Expect<Equal<typeof bound, 'x'>>

// The built-in plugins are plugins.
export const plugins: readonly Plugin[] = [clerk, fabricator, { kit: { engines: { design } } }]
void createGuild({ plugins: ['stacks', { package: 'clerk', plugin: clerk }], strict: true })
// @ts-expect-error: an option that does not exist
void createGuild({ plugin: [] })
// @ts-expect-error: an apparatus starts
export const lifeless: Plugin = { apparatus: { requires: ['stacks'] } }

export const oven: Plugin = {
  apparatus: {
    start: (ctx) => {
      ctx.on('apparatus:started', (loaded: LoadedApparatus) => console.log(loaded.id))
      const values: unknown[] = ctx.kits('engines').map(({ value }) => value)
      console.log(values, ctx.clock.now(), ctx.random())
    },
  },
}

const posted = api.post({ title: 'x', body: '' })
export type T7 = Expect<Equal<Awaited<typeof posted>, WritDoc>>
// @ts-expect-error: a writ has a title
void api.post({ body: '' })
void api.transition('w-1', 'stuck', { resolution: 'why', note: 5 })
// @ts-expect-error: a resolution is text
void api.transition('w-1', 'stuck', { resolution: 5 })
void api.list({ phase: ['open', 'stuck'], type: 'mandate', limit: 5 })
// @ts-expect-error: count has no limit
void api.count({ limit: 5 })
const linked = api.link('w-1', 'w-2', 'follows', 'spider.follows')
export type T8 = Expect<Equal<Awaited<typeof linked>, LinkDoc>>

void posted.then((writ) => {
  // @ts-expect-error: writs change through the Clerk, not in place
  writ.phase = 'open'
})

export const type: WritTypeConfig = {
  name: 't',
  // @ts-expect-error: an unknown classification
  states: [{ name: 'a', classification: 'ended', allowedTransitions: [] }],
}

export const result: EngineRunResult = { status: 'completed', yields: 1, graft: [{ id: 'a', designId: 'b' }] }
// @ts-expect-error: a failure says whether it is worth another try
export const vague: EngineRunResult = { status: 'failed', error: 'x' }
const lookup = g.apparatus<FabricatorApi>('fabricator').getEngineDesign('x')
export type T9 = Expect<Equal<typeof lookup, EngineDesign | undefined>>

// A guild in a few lines: the input of a type is what all of its steps take, and results keep their types.
const charge = defineStep('charge', async (order: { readonly orderId: string }, ctx) => {
  const given: string = ctx.writId
  const attempts: number = ctx.rigAttempt + ctx.attempt
  return { paid: order.orderId === given ? attempts : 0 }
})
const mail = defineStep('mail', async (to: { readonly email: string }, ctx) => {
  type Charged = Expect<Equal<ReturnType<typeof paid>, { paid: number }>>
  const paid = () => ctx.resultOf(charge)
  const proof: Charged = true
  return `${to.email} ${proof}`
})
const plain = defineStep('plain', () => 1)
export async function inAFewLines() {
  await using small = await startGuild({
    writTypes: { order: { steps: [charge, mail, plain] }, note: { steps: [mail] }, tick: { steps: [plain] } },
  })
  await small.post('order', { orderId: 'o-1', email: 'ada@example.com' })
  await small.post('note', { email: 'ada@example.com' }, { runAt: new Date(), deadline: 1 })
  await small.post('tick', undefined as unknown)
  // @ts-expect-error: a step takes the email, too
  await small.post('order', { orderId: 'o-1' })
  // @ts-expect-error: no such type
  await small.post('ordre', {})
  // @ts-expect-error: no such option
  await small.post('note', { email: '' }, { delay: 5 })
  const all: StartedGuild = small.host
  return all
}
// @ts-expect-error: a step needs a function
defineStep('nothing')
// @ts-expect-error: retries are counted
defineStep('often', () => 1, { retry: { retries: 'many' } })

export async function fromTheWeb() {
  await using client = await guildClient({ stacks: { backend: 'memory' } })
  const { id } = await client.post({ title: 'one', body: '' })
  export_(await client.cancel(id, { reason: 'no' }))
  // @ts-expect-error: a client has no engines
  client.crawl()
}
declare function export_(writ: WritDoc): void

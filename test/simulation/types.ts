import {
  type AnyWorkBuilder,
  type DependencyCondition,
  defineWork,
  InvalidForStateError,
  PoisonError,
  priorityDoer,
  RetryAbort,
  type WorkContext,
  WorkDelayError,
  type WorkInstanceOptions,
  type WorkResult,
} from '../../src/index.js'
import type { SimulatedProcess } from '../../src/testing/simulation/process.js'
import { type Contribution, type Deed, deedOf } from './deeds.js'

/** The input of every item: its place in the tree of work. */
export interface Input {
  readonly key: string
}

/** What a run told the group, for the reckoning afterwards. */
export interface Said {
  readonly tag: string
  readonly says: Contribution
  /** Its own result, too. */
  readonly isResult: boolean
}

/** The surroundings of the work types. */
export interface Stage {
  readonly seed: number
  readonly leaseMs: number
  readonly isSteady: boolean
  readonly isTroubled: () => boolean
  /** By `id#fence`. */
  readonly said: Map<string, Said>
  /** What was to come after what, of every run. */
  readonly links: {
    readonly on: readonly string[]
    readonly condition: DependencyCondition
    readonly next: readonly string[]
  }[]
  /** Ids of the roots so far, for gates that wait for them. */
  readonly offered: string[]
  /** Roots with their options, by id. */
  readonly roots: Map<string, { readonly offeredAt: number; readonly options: WorkInstanceOptions }>
}

export const TYPES = ['plain', 'narrow', 'bulk', 'narrow bulk'] as const

/** Four types: with and without a doer of their own, with and without a queue of their own. All behave as the seed says. */
export function workTypes(process: SimulatedProcess, stage: Stage): readonly AnyWorkBuilder[] {
  const builders: AnyWorkBuilder[] = TYPES.map((type) =>
    defineWork(type, (input: Input, ctx) => act(process, stage, builders, input, ctx), {
      ...(type.includes('narrow') ? { doer: priorityDoer({ max: 2, clock: process.clock }) } : {}),
      ...(type.includes('bulk') ? { queue: process.queue('bulk') } : {}),
    }),
  )
  return builders
}

async function act(
  process: SimulatedProcess,
  stage: Stage,
  builders: readonly AnyWorkBuilder[],
  { key }: Input,
  ctx: WorkContext,
): Promise<WorkResult> {
  const { seed, leaseMs, isSteady, isTroubled } = stage
  const deed = deedOf({
    seed,
    key,
    leaseMs,
    isSteady,
    isTroubled: isTroubled(),
    attempt: ctx.attempt,
    fence: ctx.fence,
  })
  if (deed.takesMs > 0) await process.clock.sleep(deed.takesMs)
  const { then } = deed
  switch (then.do) {
    case 'return':
      return say(stage, ctx, deed)
    case 'queue': {
      const children = Array.from({ length: then.children }, (_, n) => child(builders, `${key}.${n}`))
      let queued: WorkResult = ctx.queue([...children, say(stage, ctx, deed)])
      let before: readonly string[] | undefined = children.map(({ id }) => id)
      for (const [l, { children: count, condition, isOutside }] of then.next.entries()) {
        const next = Array.from({ length: count }, (_, n) => child(builders, `${key}.${l}_${n}`))
        if (isOutside) {
          queued = ctx.queue([queued])
          before = undefined // A chain inside, which the simulation knows and the reckoning does not.
        }
        queued = queued.next(next, condition)
        if (before !== undefined) stage.links.push({ on: before, condition, next: next.map(({ id }) => id) })
        before = next.map(({ id }) => id)
      }
      return queued
    }
    case 'throw':
      throw errorOf(then.what)
    case 'defer':
      throw new WorkDelayError({ delay: then.delayMs })
    case 'die':
      return process.crash()
    case 'hang':
      while (isTroubled()) await process.clock.sleep(2_000)
      throw new Error('it hung until the trouble was over')
  }
}

function child(builders: readonly AnyWorkBuilder[], key: string) {
  const n = [...key].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)
  return builders[n % builders.length]!({ key })
}

function errorOf(what: Extract<Deed['then'], { do: 'throw' }>['what']): Error {
  switch (what) {
    case 'plain':
      return new Error('this time it failed')
    case 'poison':
      return new PoisonError('this can never succeed')
    case 'invalid':
      return new InvalidForStateError('this does not fit')
    case 'abort':
      return new RetryAbort(new Error('enough of this'))
  }
}

/** The group's value is the list of who has contributed: so that it shows what was lost, doubled or put in another order. */
function say(stage: Stage, ctx: WorkContext, { says, then }: Deed): WorkResult {
  const tag = `${ctx.id}#${ctx.fence}`
  stage.said.set(tag, { tag, says, isResult: then.do === 'return' && says !== 'nothing' })
  const append = (existing: string[] | undefined) => [...(existing ?? []), tag]
  switch (says) {
    case 'nothing':
      return ctx.void()
    case 'append':
      return ctx.result([tag], { append })
    case 'overwrite':
      return ctx.result([tag])
    case 'final':
      return ctx.result([tag], { final: true })
    case 'append and lock':
      return ctx.result([tag], { append, final: true })
  }
}

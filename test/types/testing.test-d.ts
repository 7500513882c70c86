import { z } from 'zod'
import { type FakeContext, fakeContext } from '../../src/testing/fake-context.js'
import { fakeOutcomes } from '../../src/testing/fake-outcomes.js'
import { defineBatchWork } from '../../src/work/define/define-batch-work.js'
import { defineContract } from '../../src/work/define/define-contract.js'
import { defineWork } from '../../src/work/define/define-work.js'
import type { AnyWorkBuilder, WorkContext } from '../../src/work/define/work.js'
import type { BatchOutcomes } from '../../src/work/run/batch-outcome.js'
import type { Equal, Expect } from './equal.js'

// A handler has the types of the function that was given.
const add = defineWork('add', (input: { a: number; b: number }) => input.a + input.b)
export type H1 = Expect<Equal<Parameters<typeof add.handler>, [input: { a: number; b: number }, ctx: WorkContext]>>
export type H2 = Expect<Equal<Awaited<ReturnType<typeof add.handler>>, number>>
void add.handler({ a: 1, b: 2 }, fakeContext())
// @ts-expect-error b is missing
void add.handler({ a: 1 }, fakeContext())
// @ts-expect-error a handler needs its context
void add.handler({ a: 1, b: 2 })

// With a schema it takes what the schema returns, not what a caller gives.
const schema = z.object({ at: z.string().transform((text) => new Date(text)) })
const due = defineWork('due', ({ at }) => at.getTime(), { input: schema })
export type H3 = Expect<Equal<Parameters<typeof due.handler>[0], { at: Date }>>
const contract = defineContract('due', schema)
const byContract = defineWork(contract, ({ at }) => at.getTime())
export type H4 = Expect<Equal<Parameters<typeof byContract.handler>[0], { at: Date }>>
// @ts-expect-error a contract has no handler
void contract.handler

// A batch takes lists.
const index = defineBatchWork('index', {
  size: 2,
  maxWait: 1,
  run: (docs: readonly string[]) => docs.map((d) => d.length),
})
export type H5 = Expect<Equal<Parameters<typeof index.handler>, [inputs: readonly string[], outcomes: BatchOutcomes]>>
export type H6 = Expect<Equal<Awaited<ReturnType<typeof index.handler>>, number[]>>
void fakeOutcomes().read(index.handler(['a'], fakeOutcomes()))

// What has a handler is still a builder like any other.
export const all: readonly AnyWorkBuilder[] = [add, due, byContract, index]
export type H7 = Expect<FakeContext extends WorkContext ? true : false>
// @ts-expect-error attempts are numbers
fakeContext({ attempt: '2' })
// @ts-expect-error a dependent has a result or an error
fakeContext({ dependents: [{ work: add({ a: 1, b: 2 }) }] })

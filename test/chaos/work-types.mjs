// The work that is done under fire. The outcome that each item must have follows from its input, or from what its runs wrote down.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineWork, PoisonError } from 'millrace'
import { machineNow } from './machine-time.mjs'

/** @typedef {{ n: number, flaky: boolean, poison: boolean, ms?: number }} Leaf */
/** @typedef {{ id: string, n: number, parts: number }} Fan */
/** @typedef {{ parts: number, flaky: boolean, ms: number }} Mint */
/** @typedef {(line: Record<string, unknown>) => Promise<void>} RecordLine */

// As many attempts as by default, so that what is taken for a crash too often is seen.
const RETRY = { attempts: 3, base: 30, max: 200 }
/** A run of seconds is really killed now and then, and three times in a row before the day is over. */
const LONG_RETRY = { ...RETRY, attempts: 30 }

/**
 * @param {RecordLine} record what is awaited before and after each run
 */
export function workTypes(record) {
  /**
   * @template R
   * @param {{ id: string, fence: number, attempt: number }} ctx
   * @param {() => R | Promise<R>} run
   */
  const witnessed = async ({ id, fence, attempt }, run) => {
    await record({ is: 'start', id, fence, attempt, at: machineNow() })
    try {
      return await run()
    } finally {
      await record({ is: 'end', id, fence, at: machineNow() })
    }
  }
  /** @param {Leaf} input @param {import('millrace').WorkContext} ctx */
  const runLeaf = ({ n, flaky, poison, ms = 0 }, ctx) =>
    witnessed(ctx, async () => {
      if (ms > 0) await sleep(ms)
      if (poison) throw new PoisonError('this one can never succeed')
      if (flaky && ctx.attempt === 1) throw new Error('not at the first attempt')
      return ctx.result(n * 2)
    })

  const leaf = defineWork('leaf', runLeaf, { retry: RETRY })
  /** Runs for longer than a lease. */
  const slow = defineWork('slow', runLeaf, { retry: LONG_RETRY })
  const part = defineWork(
    'part',
    (/** @type {{ n: number, flaky: boolean }} */ { n, flaky }, ctx) =>
      witnessed(ctx, () => {
        if (flaky && ctx.attempt === 1) throw new Error('not at the first attempt')
        return ctx.result(n, { append: (/** @type {number | undefined} */ sum) => (sum ?? 0) + n })
      }),
    { retry: RETRY },
  )
  const fan = defineWork(
    'fan',
    (/** @type {Fan} */ { id, n, parts }, ctx) =>
      witnessed(ctx, () =>
        // The ids are chosen, so that a child of a repeated run is the same child.
        ctx.queue(Array.from({ length: parts }, (_, i) => ({ ...part({ n, flaky: i % 4 === 3 }), id: `${id}/${i}` }))),
      ),
    { retry: RETRY },
  )
  /** Says to whose run it belongs. */
  const minted = defineWork('minted', (/** @type {string} */ token, ctx) => witnessed(ctx, () => ctx.result(token)), {
    retry: RETRY,
  })
  /** Every run makes its own children and token: those of two runs must never be seen together. */
  const mint = defineWork(
    'mint',
    (/** @type {Mint} */ { parts, flaky, ms }, ctx) =>
      witnessed(ctx, async () => {
        const token = randomUUID()
        const children = Array.from({ length: parts }, () => minted(token))
        await record({ is: 'minted', id: ctx.id, fence: ctx.fence, token, children: children.map(({ id }) => id) })
        await sleep(ms)
        if (flaky && ctx.attempt === 1) throw new Error('not at the first attempt')
        return ctx.queue(children)
      }),
    { retry: LONG_RETRY },
  )
  /** Every run has its own result. */
  const coin = defineWork(
    'coin',
    (/** @type {number} */ ms, ctx) =>
      witnessed(ctx, async () => {
        const token = randomUUID()
        await record({ is: 'minted', id: ctx.id, fence: ctx.fence, token, children: [] })
        await sleep(ms)
        return ctx.result(token)
      }),
    { retry: LONG_RETRY },
  )
  /** What a gate queues when it opens: how often it did is counted in the value of its group. */
  const gated = defineWork(
    'gated',
    (/** @type {null} */ _, ctx) =>
      witnessed(ctx, () => ctx.result(1, { append: (/** @type {number | undefined} */ sum) => (sum ?? 0) + 1 })),
    { retry: LONG_RETRY },
  )
  /** Takes its process along, every time. */
  const crasher = defineWork(
    'crasher',
    (/** @type {null} */ _, ctx) =>
      witnessed(ctx, async () => {
        await record({ is: 'crash', id: ctx.id, fence: ctx.fence, at: machineNow() })
        process.kill(process.pid, 'SIGKILL')
        await sleep(60_000)
        return ctx.void()
      }),
    { retry: RETRY },
  )
  return { leaf, slow, part, fan, minted, mint, coin, gated, crasher }
}

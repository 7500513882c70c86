// The work that is done under fire. What each item must come to can be told from its input alone.
import { defineWork, PoisonError } from 'millrace'

/** @typedef {{ n: number, flaky: boolean, poison: boolean }} Leaf */
/** @typedef {{ id: string, n: number, parts: number }} Fan */

const RETRY = { attempts: 5, base: 30, max: 200 }

/**
 * @param {(line: Record<string, unknown>) => Promise<void>} tell what is awaited before and after each run
 */
export function workTypes(tell) {
  /**
   * @template R
   * @param {{ id: string, fence: number }} ctx
   * @param {() => R} run
   */
  const witnessed = async ({ id, fence }, run) => {
    await tell({ is: 'start', id, fence, at: Date.now() })
    const result = run()
    await tell({ is: 'end', id, fence, at: Date.now() })
    return result
  }

  const leaf = defineWork(
    'leaf',
    (/** @type {Leaf} */ { n, flaky, poison }, ctx) =>
      witnessed(ctx, () => {
        if (poison) throw new PoisonError('this one can never succeed')
        if (flaky && ctx.attempt === 1) throw new Error('not at the first attempt')
        return ctx.result(n * 2)
      }),
    { retry: RETRY },
  )
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
  return { leaf, part, fan }
}

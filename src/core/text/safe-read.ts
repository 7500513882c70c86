/**
 * Reading a value that was thrown. It can be anything: a revoked proxy, an object whose getters throw. Nothing
 * here throws, because the code that handles a failure must not become one.
 */

/** The property, or `undefined` when there is none or reading it throws. */
export function peek(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** The property if it is a string. */
export function peekString(value: unknown, key: PropertyKey): string | undefined {
  const found = peek(value, key)
  return typeof found === 'string' ? found : undefined
}

/** `value instanceof type`, and false when the question itself throws. */
export function isInstance<T>(value: unknown, type: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof type
  } catch {
    return false
  }
}

/** Whether it has properties at all. (`typeof` is safe on a revoked proxy.) */
export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** The first `limit` elements of an array, `undefined` if it is none or cannot be read. */
export function peekArray(value: unknown, limit: number): readonly unknown[] | undefined {
  try {
    return Array.isArray(value)
      ? Array.from({ length: Math.min(value.length, limit) }, (_, i) => peek(value, i))
      : undefined
  } catch {
    return undefined
  }
}

/**
 * A copy of plain data. What crosses the wire between a process and its backend is never the same object on both sides: a
 * backend that kept the caller's object, or a caller that went on writing into it, would work here and nowhere else.
 */
export function copied<T>(value: T): T {
  if (typeof value !== 'object' || value === null || value instanceof Error) return value
  if (Array.isArray(value)) return value.map(copied) as T
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) copy[key] = copied((value as Record<string, unknown>)[key])
  return copy as T
}

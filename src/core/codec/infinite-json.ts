/** Durations and counts may be without end (kept forever, tried forever), for which JSON has no number: it would read back as null. */
const WITHOUT_END = '$infinity'

/** A value as JSON, with the numbers that have no end. */
export function stringifyWithInfinity(value: unknown): string {
  return JSON.stringify(value, (_, inside: unknown) =>
    inside === Number.POSITIVE_INFINITY ? { [WITHOUT_END]: 1 } : inside,
  )
}

/** What {@link stringifyWithInfinity} wrote. Who asks for a type has to know that it was one. */
export function readEndless<T>(text: string): T {
  return JSON.parse(text, (_, inside: unknown) =>
    // Only such a mark has the number: something of that name which a user made is an object or a text there.
    (inside as Record<string, unknown> | null)?.[WITHOUT_END] === 1 ? Number.POSITIVE_INFINITY : inside,
  ) as T
}

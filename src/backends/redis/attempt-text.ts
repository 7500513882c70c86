import { toWellFormed } from '../../core/well-formed.js'
import type { Attempt } from '../../ports/item.js'

/** One run on one line, without what it does not have: most runs have nothing but their times. */
export function attemptText({ attempt, startedAt, endedAt, worker, ...failure }: Attempt): string {
  const line: unknown[] = [attempt, startedAt, endedAt, worker]
  if (Object.keys(failure).length > 0) line.push(failure)
  return toWellFormed(JSON.stringify(line))
}

export function attemptsFrom(text: string): Attempt[] {
  return text.split('\n').map((line) => {
    const [attempt, startedAt, endedAt, worker, failure] = JSON.parse(line) as [number, number, number, string, object?]
    return { attempt, startedAt, endedAt, worker, ...failure }
  })
}

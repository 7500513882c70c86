import { setTimeout as sleep } from 'node:timers/promises'

/** How long the story takes: 1 is comfortable to follow, 0.1 is ten times as fast. `MILLRACE_START_PACE` says so. */
const pace = readPace(process.env['MILLRACE_START_PACE'])

/** A duration of the story, in ms. */
export function paced(ms: number): number {
  return Math.max(1, Math.round(ms * pace))
}

/** Something takes time, unless it is no longer wanted. */
export async function takes(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(paced(ms), undefined, signal === undefined ? {} : { signal })
}

function readPace(given: string | undefined): number {
  if (given === undefined || given === '') return 1
  const value = Number(given)
  if (value > 0 && value <= 10) return value
  console.error(`MILLRACE_START_PACE is "${given}". Give a number above 0, at most 10; 1 is the usual pace.`)
  process.exit(1)
}

import type { WorkEvent } from '../../work/events.js'
import { clean } from '../terminal/clean.js'
import type { Paint } from '../terminal/paint.js'
import { cut } from '../terminal/width.js'

/** An event as a line of the story; nothing for what nobody would miss. */
export function storyLine(event: WorkEvent, sinceMs: number, paint: Paint, columns: number): string | undefined {
  const said = sentence(event)
  if (said === undefined) return undefined
  const [what, tone, rest] = said
  const id = 'id' in event ? event.id : ''
  const time = `${(sinceMs / 1_000).toFixed(2).padStart(6)} s`
  const head = `${time}  ${what.padEnd(8)}`
  return `${head.slice(0, -8)}${paint(tone, head.slice(-8))}  ${cut(clean(`${id.padEnd(12)} ${rest}`).trimEnd(), columns - head.length - 2)}`
}

function sentence(
  event: WorkEvent,
): readonly [what: string, tone: 'plain' | 'good' | 'warn' | 'bad' | 'dim', rest: string] | undefined {
  switch (event.kind) {
    case 'queued':
      return ['accepted', 'dim', event.startAt - event.at > 1_000 ? 'for later' : '']
    case 'succeeded':
      return ['done', 'good', event.attempt === 1 ? '' : `on attempt ${event.attempt}`]
    case 'failed':
      return event.willRetry
        ? ['failed', 'warn', `attempt ${event.attempt}: ${event.error} (${event.class}: tried again)`]
        : ['parked', 'bad', `attempt ${event.attempt}: ${event.error} (${event.class}: not tried again)`]
    case 'deferred':
    case 'expired':
    case 'cancelled':
      return [event.kind, 'dim', '']
    case 'started':
    case 'group-done':
      return undefined
  }
}

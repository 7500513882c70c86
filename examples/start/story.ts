import type { FailureClass, WorkEvent } from 'millrace'
import { nameOf } from './work.js'

/** Why an item was parked. */
export interface Reason {
  readonly name: string
  readonly class: FailureClass
  readonly rule: string
  readonly attempt: number
}

export interface Story {
  /** Prints what happened. */
  readonly tell: (event: WorkEvent) => void
  /** Items that were parked, by id. */
  readonly parked: ReadonlyMap<string, Reason>
}

/** Tells events as they happen, with the time since the beginning. */
export function openStory(): Story {
  const startedAt = performance.now()
  const parked = new Map<string, Reason>()
  return {
    parked,
    tell(event) {
      if (event.kind === 'failed' && !event.willRetry) parked.set(event.id, { ...event, name: nameOf(event) })
      const said = sentence(event)
      if (said === undefined) return
      const [what, name, rest] = said
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(2)
      console.log(`  ${seconds.padStart(5)} s  ${what.padEnd(9)} ${name.padEnd(22)} ${rest}`.trimEnd())
    },
  }
}

/** What happened, to what, and what there is to say about it. Nothing for what nobody would miss. */
function sentence(event: WorkEvent): readonly [what: string, name: string, rest: string] | undefined {
  switch (event.kind) {
    case 'queued':
      return ['accepted', nameOf(event), '']
    case 'started':
      return undefined
    case 'succeeded':
      return ['done', nameOf(event), event.attempt === 1 ? '' : `on attempt ${event.attempt}`]
    case 'failed': {
      const then = event.willRetry ? 'will be tried again' : 'never again'
      return [
        event.willRetry ? 'failed' : 'parked',
        nameOf(event),
        `attempt ${event.attempt}: ${event.error} (${event.class} by rule "${event.rule}": ${then})`,
      ]
    }
    case 'deferred':
      return ['put off', nameOf(event), `for ${event.runAt - event.at} ms, still attempt ${event.attempt}`]
    case 'expired':
      return ['expired', nameOf(event), '']
    case 'group-done':
      return undefined
  }
}

import type { WorkEvent } from 'millrace'
import { ink } from './ink.js'

/** What is said about something that happened. */
type Mark = keyof typeof STYLES

const STYLES = {
  accepted: 'dim',
  done: 'green',
  failed: 'yellow',
  dead: 'red',
  'put off': 'yellow',
  owed: 'cyan',
  rig: 'dim',
  reopened: 'cyan',
  completed: 'green',
  stuck: 'red',
} as const

export interface Story {
  /** Tells nothing while something else is on the screen. */
  isMuted: boolean
  /** Prints what happened to an item. */
  tell(event: WorkEvent): void
  /** Prints a line: what happened, to what, and what there is to say about it. */
  say(what: string, name: string, text: string): void
}

/** Tells what happens as it happens, with the time since this process began. */
export function openStory(): Story {
  const startedAt = performance.now()
  const say = (what: string, name: string, text: string): void => {
    if (story.isMuted) return
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const word = ink(what in STYLES ? STYLES[what as Mark] : 'reset', what.padEnd(9))
    console.log(`  ${ink('dim', `${seconds.padStart(5)} s`)}  ${word} ${name.padEnd(24)} ${text}`.trimEnd())
  }
  const story: Story = {
    isMuted: false,
    say,
    tell(event) {
      const said = sentence(event)
      if (said !== undefined) say(...said)
    },
  }
  return story
}

/** Nothing for what nobody would miss: gates, and engines, of which the guild tells in its own words. */
function sentence(event: WorkEvent): readonly [what: Mark, name: string, text: string] | undefined {
  if (event.kind === 'group-done') return undefined
  const { kind, id, type, attempt } = event
  if (type === '@work/dependency' || type === 'spider.engine') return undefined
  switch (kind) {
    case 'queued':
      return ['accepted', id, '']
    case 'started':
      return undefined
    case 'succeeded':
      return ['done', id, attempt === 1 ? '' : `on attempt ${attempt}`]
    case 'failed': {
      const then = event.willRetry ? 'will be tried again' : 'never again'
      const why = `${event.error} (${event.class} by rule "${event.rule}": ${then})`
      return [event.willRetry ? 'failed' : 'dead', id, `attempt ${attempt}: ${why}`]
    }
    case 'deferred':
      return ['put off', id, `for ${((event.runAt - event.at) / 1000).toFixed(1)} s, still attempt ${attempt}`]
    case 'expired':
      return ['dead', id, 'its deadline has passed']
    case 'cancelled':
      return ['dead', id, `cancelled: ${event.reason}`]
  }
}

import type { WorkEvent } from 'millrace'
import { ink } from './ink.js'
import { beside } from './lines.js'

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
  /** Tells nothing while something else is on the screen. What must be known is told afterwards. */
  isMuted: boolean
  /** Prints what happened to an item. */
  tell(event: WorkEvent): void
  /** Prints a line: what happened, to what, and what there is to say about it. `words` are those that it uses. */
  say(what: string, name: string, text: string, words?: readonly Word[]): void
  /** Prints something that went wrong. */
  trouble(text: string): void
}

/** Words that not every reader knows. Each is explained when it first comes up. */
const WORDS = {
  retry: 'A failure that may pass is retried, after a pause that grows.',
  dead: 'A failure that can never pass is not retried: the item is dead at once, and kept with its reason.',
  'put off': 'The van is not there yet. Waiting for it is no failure and costs no attempt.',
  schedule: 'A schedule adds work at its times, once in a whole fleet: here, the sourdough is fed.',
  writ: 'A writ is something that the guild owes, until it is completed or a person gives it up.',
  follows: 'A writ that follows another waits until that one is completed.',
  rig: 'A rig is one attempt at a writ. It is made of engines.',
  engine: 'An engine is one step of a rig, here mix or oven. It runs as an item of work.',
  stuck: 'A writ is stuck when its rig has failed.',
  'Clockworks-Retry':
    'Clockworks-Retry opens a stuck writ again where the failure may pass: a new rig tries. Here, a writ has two.',
} as const

export type Word = keyof typeof WORDS

/** Where the name of a line begins, and how wide it is. */
const NAME_AT = 21
const NAME = 24

/** Tells what happens as it happens, with the time since this process began. */
export function openStory(): Story {
  const startedAt = performance.now()
  const explained = new Set<Word>()
  const held: string[] = []
  const explain = (word: Word): void => {
    if (explained.has(word)) return
    explained.add(word)
    for (const line of beside(' '.repeat(NAME_AT), NAME_AT, WORDS[word])) console.log(ink('dim', line))
  }
  const say: Story['say'] = (what, name, text, words = []) => {
    if (story.isMuted) return
    words.forEach(explain)
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    const time = `  ${seconds.padStart(5)} s`
    const [first = '', ...rest] = beside(`${time}  ${what.padEnd(9)} ${name.padEnd(NAME)} `, NAME_AT, text)
    const word = ink(what in STYLES ? STYLES[what as Mark] : 'reset', what)
    console.log(`${ink('dim', time)}  ${word}${first.slice(time.length + 2 + what.length)}`)
    for (const line of rest) console.log(line)
  }
  const story: Story = {
    get isMuted() {
      return isMuted
    },
    set isMuted(is) {
      isMuted = is
      if (!is) for (const text of held.splice(0)) story.trouble(text)
    },
    say,
    tell(event) {
      const said = sentence(event)
      if (said !== undefined) say(...said)
    },
    trouble(text) {
      if (isMuted) held.push(text)
      else console.error(`  ${text}`)
    },
  }
  let isMuted = false
  return story
}

/** Nothing of gates, which nobody would miss, and of engines, of which the guild tells in its own words. */
function sentence(
  event: WorkEvent,
): readonly [what: Mark, name: string, text: string, words?: readonly Word[]] | undefined {
  if (event.kind === 'group-done') return undefined
  const { kind, id, type, attempt } = event
  if (type === '@work/dependency' || type === 'spider.engine') return undefined
  switch (kind) {
    case 'queued':
      return ['accepted', id, '', type === 'feed-sourdough' ? ['schedule'] : []]
    case 'started':
      return undefined
    case 'succeeded':
      return ['done', id, attempt === 1 ? '' : `on attempt ${attempt}`]
    case 'failed': {
      const then = event.willRetry ? 'will be tried again' : 'never again'
      const why = `${event.error} (${event.class} by rule "${event.rule}": ${then})`
      return event.willRetry
        ? ['failed', id, `attempt ${attempt}: ${why}`, ['retry']]
        : ['dead', id, `attempt ${attempt}: ${why}`, ['dead']]
    }
    case 'deferred':
      return [
        'put off',
        id,
        `for ${((event.runAt - event.at) / 1000).toFixed(1)} s, still attempt ${attempt}`,
        ['put off'],
      ]
    case 'expired':
      return ['dead', id, 'its deadline has passed']
    case 'cancelled':
      return ['dead', id, `cancelled: ${event.reason}`]
  }
}

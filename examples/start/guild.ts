import { createGuild, guild, type PluginSource, type StartedGuild } from 'millrace/guild'
import type { ClerkApi, WritDoc } from 'millrace/guild/clerk'
import type { ClockworksRetryApi } from 'millrace/guild/clockworks-retry'
import type { EngineDesign } from 'millrace/guild/fabricator'
import type { SpiderApi } from 'millrace/guild/spider'
import type { ChangeEvent, StacksApi } from 'millrace/guild/stacks'
import type { Outside } from './outside.js'
import { takes } from './pace.js'
import { FLOUR, WRITS } from './plan.js'
import type { Story } from './story.js'

/** The guild, with what the program asks of it. */
export interface Bakers {
  readonly guild: StartedGuild
  readonly stacks: StacksApi
  readonly clerk: ClerkApi
  readonly spider: SpiderApi
  readonly retry: ClockworksRetryApi
}

/** A guild that owes bread: its documents are in `file`, and every writ is executed by a rig of two engines, mix and oven. */
export async function openGuild(file: string, outside: Outside, story: Story): Promise<Bakers> {
  const g = await createGuild({
    strict: true,
    config: {
      plugins: ['stacks', 'clerk', 'fabricator', 'spider', 'clockworks-retry'],
      // Short, so what a killed process was to be told is told soon to the next.
      stacks: { backend: 'sqlite', file, watcherLeaseMs: 2_000 },
      spider: {
        rigTemplates: {
          bread: {
            engines: [
              { id: 'mix', designId: 'mix', givens: { title: expression('writ.title') } },
              { id: 'oven', designId: 'oven', upstream: ['mix'], givens: { title: expression('writ.title') } },
            ],
          },
        },
        rigTemplateMappings: { mandate: 'bread' },
        pollIntervalMs: 1_000,
      },
    },
    plugins: [{ package: 'bakery-kit', plugin: { kit: { engines: enginesOf(outside, story) } } }, tellerOf(story)],
  })
  return {
    guild: g,
    stacks: g.apparatus<StacksApi>('stacks'),
    clerk: g.apparatus<ClerkApi>('clerk'),
    spider: g.apparatus<SpiderApi>('spider'),
    retry: g.apparatus<ClockworksRetryApi>('clockworks-retry'),
  }
}

/** Posts the writs of the day, all in one transaction: a process that dies in it has posted none, and the next one posts them. */
export async function postWrits({ stacks, clerk }: Pick<Bakers, 'stacks' | 'clerk'>): Promise<void> {
  await stacks.transaction(async () => {
    if ((await clerk.count()) > 0) return
    const ids = new Map<string, string>()
    for (const { title } of WRITS) ids.set(title, (await clerk.post({ title, body: '' })).id)
    for (const { title, follows } of WRITS) {
      const [from, to] = [ids.get(title), follows === undefined ? undefined : ids.get(follows)]
      if (from !== undefined && to !== undefined) await clerk.link(from, to, 'follows', 'spider.follows')
    }
  })
}

/** Where a writ stands, and whether that is where it stays without a person. */
export interface WritStand {
  readonly title: string
  readonly phase: string
  readonly rigs: number
  /** How many of its rigs failed because their process was killed under one and the same engine three times. */
  readonly killedRigs: number
  readonly why: string
  readonly isAtRest: boolean
}

/** Every writ as it stands, the oldest first. */
export async function standOfWrits({ clerk, spider, retry }: Bakers): Promise<readonly WritStand[]> {
  const writs = [...(await clerk.list({ limit: 100 }))].reverse()
  const killed = (await spider.list({ status: 'stuck', limit: 100 })).filter(({ engines }) =>
    engines.some(({ error }) => error?.includes('Engine lease expired')),
  )
  const stands = new Map<string, WritStand>()
  for (const { id, title, phase } of writs) {
    const { attempts: rigs, decision, reason } = await retry.describe(id)
    const isAtRest = phase === 'stuck' ? decision === 'leave' : phase !== 'open'
    const killedRigs = killed.filter(({ writId }) => writId === id).length
    stands.set(id, { title, phase, rigs, killedRigs, why: phase === 'stuck' ? reason : '', isAtRest })
  }
  for (const [id, stand] of stands) {
    if (stand.phase !== 'open') continue
    // An open writ goes on by itself, unless what it follows does not.
    const { outbound } = await clerk.links(id)
    const blocker = outbound.map(({ targetId }) => stands.get(targetId)).find((other) => other?.phase === 'stuck')
    if (blocker === undefined) continue
    const why = `It follows "${blocker.title}", which is stuck.`
    stands.set(id, { ...stand, why, isAtRest: blocker.isAtRest })
  }
  return [...stands.values()]
}

function enginesOf(outside: Outside, story: Story): Record<string, EngineDesign> {
  const begin = async (rigId: string, engineId: string, title: string) => {
    // Which attempt at the writ this is: one rig is one attempt.
    const { attempt } = await guild().apparatus<SpiderApi>('spider').show(rigId)
    story.say('rig', title, `rig ${attempt}: ${engineId}`, ['rig', 'engine'])
    return attempt
  }
  return {
    mix: {
      id: 'mix',
      async run({ title }, { rigId, engineId, signal, idempotencyKey }) {
        const rig = await begin(rigId, engineId, String(title))
        await takes(700, signal)
        // The key is that of this engine in this rig: the same after a crash, and another one in the next rig, which needs new flour.
        outside.once(`${idempotencyKey}`, { kind: 'flour', subject: `${title}, rig ${rig}`, amount: FLOUR })
        await takes(300, signal)
        return { status: 'completed', yields: { dough: `${title} dough` } }
      },
    },
    oven: {
      id: 'oven',
      async run({ title }, { rigId, engineId, signal, idempotencyKey }) {
        const rig = await begin(rigId, engineId, String(title))
        await takes(900, signal)
        // A plain error: it may pass, so the writ is worth another rig, as long as it has had fewer than the cap.
        if (WRITS.find((writ) => writ.title === title)?.ovenFails(rig) === true) throw new Error('the oven is too cold')
        outside.once(`${idempotencyKey}`, { kind: 'shelf', subject: String(title), amount: 1 })
        await takes(300, signal)
        return { status: 'completed', yields: { on: 'the shelf' } }
      },
    },
  }
}

/** Tells of every step of a writ, after it was committed. */
function tellerOf(story: Story): PluginSource {
  const onChange = (event: ChangeEvent<WritDoc>): void => {
    if (event.type === 'create') {
      const { title: owed } = event.entry
      const follows = WRITS.find((writ) => writ.title === owed)?.follows
      if (follows === undefined) story.say('owed', owed, 'a new writ', ['writ'])
      else story.say('owed', owed, `a new writ, which follows "${follows}"`, ['writ', 'follows'])
    }
    if (event.type !== 'update' || event.prev.phase === event.entry.phase) return
    const { title, phase, resolution } = event.entry
    const isRetry = event.prev.phase === 'stuck' && phase === 'open'
    if (isRetry) story.say('reopened', title, 'by Clockworks-Retry', ['Clockworks-Retry'])
    else if (phase === 'stuck') story.say(phase, title, `${resolution ?? ''}`, ['stuck'])
    else story.say(phase, title, '')
  }
  return {
    package: 'teller-apparatus',
    plugin: {
      apparatus: {
        requires: ['stacks', 'clerk'],
        start: () => {
          guild().apparatus<StacksApi>('stacks').watch<WritDoc>('clerk', 'writs', onChange, { failOnError: false })
        },
      },
    },
  }
}

/** In `guild.json` one writes `${writ.title}`; here that would look like a slip of the keyboard. */
function expression(path: string): string {
  return `$\{${path}}`
}

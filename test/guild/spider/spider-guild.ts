import { type Apparatus, type GuildConfig, guild, type PluginSource, type StartedGuild } from 'millrace/guild'
import type { ClerkApi, WritDoc } from 'millrace/guild/clerk'
import clockworksRetry from 'millrace/guild/clockworks-retry'
import fabricatorPlugin, { type EngineDesign, type RigTemplateEngine } from 'millrace/guild/fabricator'
import {
  type CrawlResult,
  createSpider,
  type RigDoc,
  type RigTemplate,
  type SpiderApi,
  type SpiderConfig,
  type SpiderWarning,
  type SpiderWritStatus,
} from 'millrace/guild/spider'
import type { Stacks } from 'millrace/guild/stacks'
import type { Clock } from '../../../src/core/time/clock.js'
import { clerkGuild, type Ground } from '../grounds.js'

/** What a guild with Spider is made of, for tests. */
export interface SpiderGuildOptions {
  readonly designs?: Readonly<Record<string, EngineDesign['run'] | Omit<EngineDesign, 'id'>>>
  /** The engines of the template that mandates are mapped to. */
  readonly engines?: readonly RigTemplateEngine[]
  readonly template?: Omit<RigTemplate, 'engines'>
  readonly spider?: SpiderConfig
  readonly config?: GuildConfig
  readonly plugins?: readonly PluginSource[]
  readonly hasRetry?: boolean
  readonly clock?: Clock
  /** Another Stacks plugin than that of the ground. */
  readonly stacks?: Apparatus
}

export interface SpiderGuild {
  readonly g: StartedGuild
  readonly clerk: ClerkApi
  readonly stacks: Stacks
  readonly spider: SpiderApi
  readonly warnings: SpiderWarning[]
  post(title?: string): Promise<WritDoc>
  follows(source: WritDoc, target: WritDoc): Promise<void>
  /** Crawls until there is nothing to do, fifty times at most. */
  drain(): Promise<CrawlResult[]>
  rigsOf(writ: WritDoc): Promise<RigDoc[]>
  statusOf(writ: WritDoc): Promise<SpiderWritStatus | undefined>
  phaseOf(writ: WritDoc): Promise<string>
}

export async function spiderGuild(ground: Ground, options: SpiderGuildOptions = {}): Promise<SpiderGuild> {
  const warnings: SpiderWarning[] = []
  const given = options.designs ?? { done: async () => ({ status: 'completed', yields: { ok: true } }) }
  const designs = Object.fromEntries(
    Object.entries(given).map(([id, design]) => [
      id,
      typeof design === 'function' ? { id, run: design } : { ...design, id },
    ]),
  )
  const engines = options.engines ?? [{ id: 'only', designId: Object.keys(designs)[0] ?? '' }]
  const spiderConfig: SpiderConfig = {
    rigTemplates: { standard: { ...options.template, engines } },
    rigTemplateMappings: { mandate: 'standard' },
    ...options.spider,
  }
  const { g, clerk, stacks } = await clerkGuild(ground, {
    config: { ...options.config, spider: spiderConfig },
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.stacks === undefined ? {} : { stacks: options.stacks }),
    plugins: [
      { package: 'millrace/guild/fabricator', plugin: fabricatorPlugin },
      { package: 'millrace/guild/spider', plugin: { apparatus: createSpider({ onWarning: (w) => warnings.push(w) }) } },
      { package: 'test-designs-kit', plugin: { kit: { requires: ['fabricator'], engines: designs } } },
      ...(options.hasRetry === true ? [{ package: 'millrace/guild/clockworks-retry', plugin: clockworksRetry }] : []),
      ...(options.plugins ?? []),
    ],
  })
  const spider = g.apparatus<SpiderApi>('spider')
  return {
    g,
    clerk,
    stacks,
    spider,
    warnings,
    post: (title = 'a writ') => clerk.post({ title, body: '' }),
    follows: async (source, target) => {
      await clerk.link(source.id, target.id, 'follows', 'spider.follows')
    },
    drain: async () => {
      const results: CrawlResult[] = []
      for (let crawls = 0; crawls < 50; crawls += 1) {
        const result = await spider.crawl()
        if (result === null) return results
        results.push(result)
      }
      throw new Error(`Still busy after fifty crawls: ${JSON.stringify(results.at(-1))}`)
    },
    rigsOf: async (writ) => {
      const rigs = await spider.list({ limit: 1000 })
      return rigs.filter(({ writId }) => writId === writ.id).sort((a, b) => a.attempt - b.attempt)
    },
    statusOf: async (writ) => (await clerk.show(writ.id)).status?.['spider'] as SpiderWritStatus | undefined,
    phaseOf: async (writ) => (await clerk.show(writ.id)).phase,
  }
}

/** An engine that fails in every run. */
export const thrower: EngineDesign['run'] = async () => {
  throw new Error('boom')
}

/** A type that is like a mandate and has another name; templates are mapped to it by tests that want to. */
export const errands: PluginSource = {
  package: 'errands-apparatus',
  plugin: {
    apparatus: {
      requires: ['clerk'],
      start: () => {
        const clerk = guild().apparatus<ClerkApi>('clerk')
        clerk.registerWritType({ ...clerk.getWritTypeConfig('mandate'), name: 'errand' })
      },
    },
  },
}

import { hostname } from 'node:os'
import { newToken } from '../../core/ids.js'
import { integerOption, optionsObject, stringOption } from '../../core/options.js'
import { errorMessage } from '../../core/text/error-text.js'
import type { ClerkApi } from '../clerk/api.js'
import type { ClerkConfig } from '../clerk/apparatus.js'
import type { LinkDoc, WritDoc } from '../clerk/writs/writ.js'
import { writIds } from '../clerk/writs/writ-ids.js'
import { resolveEngineRetry } from '../fabricator/engine-retry.js'
import type { FabricatorApi } from '../fabricator/registry.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import type { StacksApi } from '../stacks/api.js'
import type { CrawlResult, RigListing, SpiderApi } from './api.js'
import { resolveSpiderConfig, type SpiderConfig } from './config.js'
import { SPIDER_BOOKS, type SpiderContext, type SpiderWarning, spiderContext } from './context.js'
import { cancelledText, cancelNewest } from './dispatch/cancel-rigs.js'
import { linkWatcher, writWatcher } from './dispatch/dispatch-queue.js'
import { completeWithRig, hasOwnWork } from './dispatch/families.js'
import { queueOpenWrits } from './dispatch/open-writs.js'
import { writFollowsRig } from './dispatch/writ-follows-rig.js'
import { BlockTypes, builtInBlockTypes } from './engines/block-types.js'
import { crawl, stopRuns } from './engines/crawl.js'
import type { SessionDoc } from './engines/sessions.js'
import { endedRigWatcher, sessionWatcher } from './engines/sessions.js'
import { NotBlockedError, RigNotFoundError, SpiderConfigError } from './errors.js'
import { cancelRig } from './rigs/end-rig.js'
import { newestRig } from './rigs/newest-rig.js'
import type { EngineInstance, EngineRow, RigDoc, RigRow } from './rigs/rig.js'
import { enginesOf, RigTransaction } from './rigs/rig-transaction.js'
import { readTemplates } from './rigs/templates.js'
import { SpiderWorkRunner } from './work/work-runner.js'

/** What a Spider is made with. */
export interface SpiderOptions {
  /** Called with what went wrong where no call was left to reject. Default: `process.emitWarning`. */
  readonly onWarning?: (warning: SpiderWarning) => void
}

/** A Spider, for one guild. */
export function createSpider(options: SpiderOptions = {}): Apparatus {
  let api: SpiderApi | undefined
  let stop = async (): Promise<void> => undefined
  const warn =
    options.onWarning ?? (({ code, message }) => process.emitWarning(message, { type: 'SpiderWarning', code }))
  return {
    requires: ['stacks', 'clerk', 'fabricator'],
    consumes: ['blockTypes', 'rigTemplates', 'rigTemplateMappings'],
    get provides() {
      return api
    },
    supportKit: {
      books: SPIDER_BOOKS,
      linkKinds: [{ id: 'spider.follows', description: 'gets no rig before the other has ended' }],
    },
    start(ctx) {
      const g = guild()
      const isStrict = g.config<ClerkConfig>('clerk').strictCompletion === true
      const config = { ...resolveSpiderConfig(g.config<SpiderConfig>('spider')), isStrict }
      const stacks = g.apparatus<StacksApi>('stacks')
      const clerk = g.apparatus<ClerkApi>('clerk')
      const fabricator = g.apparatus<FabricatorApi>('fabricator')
      for (const [id, retry] of Object.entries(config.engineRetryOverrides)) {
        if (fabricator.getEngineDesign(id) === undefined)
          throw new SpiderConfigError(`engineRetryOverrides names "${id}", which is no engine design.`, { id })
        resolveEngineRetry(retry, `guild.json.spider.engineRetryOverrides.${id}`)
      }
      const blockTypes = new BlockTypes(
        ctx.kits('blockTypes'),
        builtInBlockTypes(stacks, clerk, () => ctx.clock.now()),
      )
      const templates = readTemplates({
        config,
        fabricator,
        guild: g,
        rigTemplates: ctx.kits('rigTemplates'),
        rigTemplateMappings: ctx.kits('rigTemplateMappings'),
        warn: (message) => warn({ code: 'TEMPLATE', message }),
      })
      const newWritId = writIds(ctx.clock, ctx.random)
      const newRigId = () => `rig-${newWritId().slice(2)}`
      // A claim names the process that holds it; the token distinguishes two guilds in one process.
      const owner = `${process.pid}@${hostname()} ${newToken()}`
      const context = spiderContext({
        stacks,
        clerk,
        fabricator,
        config,
        templates,
        blockTypes,
        clock: ctx.clock,
        random: ctx.random,
        owner,
        newRigId,
        warn,
      })
      const runner = new SpiderWorkRunner(context)
      clerk.holdParents((parent) => hasOwnWork(context, parent))
      stacks.watch<WritDoc>(
        'clerk',
        'writs',
        writWatcher(context, {
          endRigOf: ({ id }) => cancelNewest(context, id, cancelledText(id)),
          completeParent: async (id) => void (await completeWithRig(context, id)),
        }),
      )
      stacks.watch<LinkDoc>('clerk', 'links', linkWatcher(context))
      stacks.watch<RigRow>('spider', 'rigs', writFollowsRig(context))
      stacks.watch<SessionDoc>(config.sessions.ownerId, config.sessions.book, sessionWatcher(context))
      stacks.watch<RigRow>('spider', 'rigs', endedRigWatcher(context, g), { failOnError: false })
      runner.watch()
      ctx.on('phase:started', async () => {
        checkMappedTypes(context)
        await queueOpenWrits(context)
      })
      api = spiderApi(context, runner)
      stop = async () => {
        await stopRuns(context)
        await runner.stop()
      }
    },
    stop: () => stop(),
  }
}

function spiderApi(context: SpiderContext, runner: SpiderWorkRunner): SpiderApi {
  return Object.freeze<SpiderApi>({
    crawl: async (): Promise<CrawlResult | null> => crawl(context),
    engineWork: runner.engineWork,
    start: (start) => runner.start(start),
    show: async (rigId) => {
      const rig = await context.rigs.get(stringOption('show(rigId)', rigId))
      if (rig === null) throw new RigNotFoundError(rigId)
      return read(context, rig)
    },
    list: async (given) => {
      const listing = optionsObject<RigListing>('list()', given, ['status', 'limit', 'offset'])
      const limit = integerOption('list().limit', listing.limit, { min: 1, default: 20 })
      const offset = integerOption('list().offset', listing.offset, { min: 0, default: 0 })
      const where = listing.status === undefined ? [] : [['status', '=', listing.status] as const]
      const orderBy = [
        ['createdAt', 'desc'],
        ['id', 'desc'],
      ] as const
      const rows = await context.rigs.find({ where, orderBy, limit, offset })
      return Promise.all(rows.map((rig) => read(context, rig)))
    },
    forWrit: async (writId) => {
      const rig = await newestRig(context, stringOption('forWrit(writId)', writId))
      return rig === undefined ? null : read(context, rig)
    },
    resume: async (rigId, engineId) => resume(context, rigId, engineId),
    cancel: async (rigId, options) => cancel(context, rigId, options?.reason ?? 'Rig cancelled'),
    getBlockType: (id) => context.blockTypes.get(id),
    listBlockTypes: () => context.blockTypes.list(),
    listTemplates: () => [...context.templates.templates.values()],
    listTemplateMappings: () => [...context.templates.mappings.values()],
  })
}

async function resume(context: SpiderContext, rigId: string, engineId: string): Promise<RigDoc> {
  return context.change(async () => {
    const tx = await RigTransaction.load(context, stringOption('resume(rigId)', rigId))
    if (tx === undefined) throw new RigNotFoundError(rigId)
    const engine = tx.engine(stringOption('resume(engineId)', engineId))
    const isHeld = engine?.status === 'pending' && engine.holdUntil !== undefined
    if (engine === undefined || !tx.isActive || !(engine.status === 'blocked' || isHeld))
      throw new NotBlockedError(rigId, engineId, engine?.status)
    const prior = engine.block === undefined ? {} : { priorBlock: engine.block }
    const resumes = engine.status === 'blocked' ? { resumes: (engine.resumes ?? 0) + 1 } : {}
    tx.set(engineId, { status: 'pending', block: undefined, holdUntil: undefined, ...prior, ...resumes })
    await tx.save()
    return read(context, tx.rig)
  })
}

async function cancel(context: SpiderContext, rigId: string, reason: string): Promise<RigDoc> {
  return context.change(async () => {
    const tx = await RigTransaction.load(context, stringOption('cancel(rigId)', rigId))
    if (tx === undefined) throw new RigNotFoundError(rigId)
    if (tx.isBusy) await cancelRig(context, tx, reason)
    else if (tx.rig.status === 'stuck') {
      tx.setRig({ status: 'cancelled' })
      await tx.save()
    }
    return read(context, tx.rig)
  })
}

/** A rig as people read it: with its engines in it. */
async function read(context: SpiderContext, row: RigRow): Promise<RigDoc> {
  const { step: _, ...rig } = row
  return { ...rig, engines: (await enginesOf(context, rig.id)).map(instance) }
}

function instance({ rigId: _, engineId: id, place, slot, isSessionOver, item, ...engine }: EngineRow): EngineInstance {
  return { ...engine, id }
}

/** Spider moves a writ to each of these phases, so its type must have them. */
function checkMappedTypes({ clerk, templates, warn }: SpiderContext): void {
  for (const { writType, pluginId } of templates.mappings.values()) {
    let phases: readonly string[]
    try {
      phases = clerk.getWritTypeConfig(writType).states.map(({ name }) => name)
    } catch (error) {
      // What a kit maps is left alone: the plugin with that type may not be wanted here.
      if (pluginId === null)
        throw new SpiderConfigError(`guild.json.spider.rigTemplateMappings: ${errorMessage(error)}`, { writType })
      warn({
        code: 'TEMPLATE',
        message: `"${pluginId}" maps a template to a writ type that is not there. ${errorMessage(error)}`,
      })
      continue
    }
    const missing = ['open', 'stuck', 'completed', 'failed', 'cancelled'].filter((phase) => !phases.includes(phase))
    if (missing.length > 0)
      throw new SpiderConfigError(
        `The writ type "${writType}" is mapped to a rig template and has no phase ${missing.join(', ')}.`,
        { writType },
      )
  }
}

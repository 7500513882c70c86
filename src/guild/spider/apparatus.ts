import { hostname } from 'node:os'
import { newToken } from '../../core/ids.js'
import { integerOption, optionsObject, stringOption } from '../../core/options.js'
import type { ClerkApi } from '../clerk/api.js'
import type { LinkDoc, WritDoc } from '../clerk/writ.js'
import { writIds } from '../clerk/writ-ids.js'
import { resolveEngineRetry } from '../fabricator/engine-retry.js'
import type { FabricatorApi } from '../fabricator/registry.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import type { StacksApi } from '../stacks/api.js'
import type { CrawlResult, RigListing, SpiderApi } from './api.js'
import { Autonomy } from './autonomy.js'
import { BlockTypes, builtInBlockTypes } from './block-types.js'
import { newestRig, rigCascade } from './cascade.js'
import { resolveSpiderConfig, type SpiderConfig } from './config.js'
import { crawl, stopRuns } from './crawl.js'
import { cancelRig } from './end-rig.js'
import { NotBlockedError, RigNotFoundError, SpiderConfigError } from './errors.js'
import { Floor, SPIDER_BOOKS, type SpiderWarning } from './floor.js'
import { linkWatcher, placeInLine, writWatcher } from './line.js'
import type { EngineInstance, EngineRow, RigDoc, RigRow } from './rig.js'
import type { SessionDoc } from './session.js'
import { endedRigWatcher, sessionWatcher } from './sessions.js'
import { Sheet } from './sheet.js'
import { readTemplates } from './templates.js'

/** What a Spider is made with. */
export interface SpiderOptions {
  /** Hears of what nobody could be told by a rejection. Default: `process.emitWarning`. */
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
      const config = resolveSpiderConfig(g.config<SpiderConfig>('spider'))
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
      // Whoever looks at a claim wants to find the process; the token tells two guilds in one apart.
      const owner = `${process.pid}@${hostname()} ${newToken()}`
      const floor = new Floor({
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
      const autonomy = new Autonomy(floor)
      stacks.watch<WritDoc>('clerk', 'writs', writWatcher(floor))
      stacks.watch<LinkDoc>('clerk', 'links', linkWatcher(floor))
      stacks.watch<RigRow>('spider', 'rigs', rigCascade(floor))
      stacks.watch<SessionDoc>(config.sessions.ownerId, config.sessions.book, sessionWatcher(floor))
      stacks.watch<RigRow>('spider', 'rigs', endedRigWatcher(floor, g), { failOnError: false })
      autonomy.watch()
      ctx.on('phase:started', async () => {
        checkMappedTypes(floor)
        await joinLine(floor)
      })
      api = spiderApi(floor, autonomy)
      stop = async () => {
        await stopRuns(floor)
        await autonomy.stop()
      }
    },
    stop: () => stop(),
  }
}

function spiderApi(floor: Floor, autonomy: Autonomy): SpiderApi {
  return Object.freeze<SpiderApi>({
    crawl: async (): Promise<CrawlResult | null> => crawl(floor),
    engineWork: autonomy.engineWork,
    start: (start) => autonomy.start(start),
    show: async (rigId) => {
      const rig = await floor.rigs.get(stringOption('show(rigId)', rigId))
      if (rig === null) throw new RigNotFoundError(rigId)
      return read(floor, rig)
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
      const rows = await floor.rigs.find({ where, orderBy, limit, offset })
      return Promise.all(rows.map((rig) => read(floor, rig)))
    },
    forWrit: async (writId) => {
      const rig = await newestRig(floor, stringOption('forWrit(writId)', writId))
      return rig === undefined ? null : read(floor, rig)
    },
    resume: async (rigId, engineId) => resume(floor, rigId, engineId),
    cancel: async (rigId, options) => cancel(floor, rigId, options?.reason ?? 'Rig cancelled'),
    getBlockType: (id) => floor.blockTypes.get(id),
    listBlockTypes: () => floor.blockTypes.list(),
    listTemplates: () => [...floor.templates.templates.values()],
    listTemplateMappings: () => [...floor.templates.mappings.values()],
  })
}

async function resume(floor: Floor, rigId: string, engineId: string): Promise<RigDoc> {
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, stringOption('resume(rigId)', rigId))
    if (sheet === undefined) throw new RigNotFoundError(rigId)
    const engine = sheet.engine(stringOption('resume(engineId)', engineId))
    const isHeld = engine?.status === 'pending' && engine.holdUntil !== undefined
    if (engine === undefined || !sheet.isActive || !(engine.status === 'blocked' || isHeld))
      throw new NotBlockedError(rigId, engineId, engine?.status)
    const prior = engine.block === undefined ? {} : { priorBlock: engine.block }
    const resumes = engine.status === 'blocked' ? { resumes: (engine.resumes ?? 0) + 1 } : {}
    sheet.set(engineId, { status: 'pending', block: undefined, holdUntil: undefined, ...prior, ...resumes })
    await sheet.save()
    return read(floor, sheet.rig)
  })
}

async function cancel(floor: Floor, rigId: string, reason: string): Promise<RigDoc> {
  return floor.change(async () => {
    const sheet = await Sheet.load(floor, stringOption('cancel(rigId)', rigId))
    if (sheet === undefined) throw new RigNotFoundError(rigId)
    if (sheet.isBusy) await cancelRig(floor, sheet, reason)
    else if (sheet.rig.status === 'stuck') {
      sheet.setRig({ status: 'cancelled' })
      await sheet.save()
    }
    return read(floor, sheet.rig)
  })
}

/** A rig as people read it: with its engines in it. */
async function read(floor: Floor, row: RigRow): Promise<RigDoc> {
  const { step: _, ...rig } = row
  const rows = await floor.engines.find({ where: [['rigId', '=', rig.id]], orderBy: ['place', 'asc'] })
  return { ...rig, engines: rows.map(instance) }
}

function instance({ rigId: _, engineId: id, place, slot, isSessionOver, item, ...engine }: EngineRow): EngineInstance {
  return { ...engine, id }
}

/** A type that cannot be stuck could not be told what happened to its rig. */
function checkMappedTypes({ clerk, templates }: Floor): void {
  for (const { writType } of templates.mappings.values()) {
    let phases: readonly string[]
    try {
      phases = clerk.getWritTypeConfig(writType).states.map(({ name }) => name)
    } catch {
      // A type that nobody registers has no writs.
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

/** How many writs are read at once. */
const PAGE = 200

/** Writs that were opened while no Spider was there, or before their type had a template, join the line. */
async function joinLine(floor: Floor): Promise<void> {
  const types = [...floor.templates.mappings.keys()]
  const open = [
    ['phase', '=', 'open'],
    ['type', 'IN', types],
  ] as const
  const inLine = await floor.dispatch.count([['isOpen', '=', true]])
  if (types.length === 0 || (await floor.writs.count([...open])) === inLine) return
  for (let last = ''; ; ) {
    const writs = await floor.writs.find({ where: [...open, ['id', '>', last]], orderBy: ['id', 'asc'], limit: PAGE })
    await floor.change(async () => {
      for (const { id } of writs) await placeInLine(floor, id, await floor.writs.get(id))
    })
    if (writs.length < PAGE) return
    last = writs.at(-1)?.id ?? last
  }
}

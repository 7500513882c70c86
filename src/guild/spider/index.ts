/** Spider: gives writs their rigs, and runs the engines in them. */
import type { Apparatus } from '../host/plugin.js'
import { createSpider } from './apparatus.js'

/** A new Spider each time it is read, so that two guilds in one process do not share one. */
const spider: { readonly apparatus: Apparatus } = {
  get apparatus() {
    return createSpider()
  },
}

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default spider

export type { CrawlResult, RigListing, SpiderApi } from './api.js'
export { createSpider, type SpiderOptions } from './apparatus.js'
export type { EngineItem, EngineWork, SpiderRunning, StartSpider } from './autonomy.js'
export type { BlockCheck, BlockType, BlockTypeInfo } from './block-types.js'
export type { SpiderConfig } from './config.js'
export { NotBlockedError, RigNotFoundError, SpiderConfigError } from './errors.js'
export type { CompiledGiven, CompiledGivens, CompiledWhen, Expression } from './expression.js'
export type { SpiderWarning } from './floor.js'
export type {
  EngineAttempt,
  EngineClaim,
  EngineInstance,
  EngineStatus,
  InputRequestDoc,
  PendingGraft,
  RigDoc,
  RigStatus,
} from './rig.js'
export type { SessionCanceller, SessionDoc } from './session.js'
export type { RigTemplate, RigTemplateInfo, RigTemplateMappingInfo } from './templates.js'
export type { SpiderWritStatus } from './writ-status.js'

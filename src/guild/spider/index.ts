/** Spider: gives writs their rigs, and runs the engines in them. */
import type { Apparatus } from '../host/plugin.js'
import { createSpider } from './apparatus.js'

/** A new Spider each time it is read, so two guilds in one process do not share one. */
const spider: { readonly apparatus: Apparatus } = {
  get apparatus() {
    return createSpider()
  },
}

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default spider

export type { CrawlResult, RigListing, SpiderApi } from './api.js'
export { createSpider, type SpiderOptions } from './apparatus.js'
export type { SpiderConfig } from './config.js'
export type { SpiderWarning } from './context.js'
export type { SpiderWritStatus } from './dispatch/writ-status.js'
export type { BlockCheck, BlockType, BlockTypeInfo } from './engines/block-types.js'
export type { SessionCanceller, SessionDoc } from './engines/sessions.js'
export { EngineTimeoutError, NotBlockedError, RigNotFoundError, SpiderConfigError } from './errors.js'
export type { CompiledGiven, CompiledGivens, CompiledWhen, Expression } from './rigs/expression.js'
export type {
  EngineAttempt,
  EngineClaim,
  EngineInstance,
  EngineStatus,
  InputRequestDoc,
  PendingGraft,
  RigDoc,
  RigStatus,
} from './rigs/rig.js'
export type { RigTemplate, RigTemplateInfo, RigTemplateMappingInfo } from './rigs/templates.js'
export type { EngineItem, EngineWork, SpiderRunning, StartSpider } from './work/work-runner.js'

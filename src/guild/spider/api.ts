import type { BlockType, BlockTypeInfo } from './engines/block-types.js'
import type { RigDoc, RigStatus } from './rigs/rig.js'
import type { RigTemplateInfo, RigTemplateMappingInfo } from './rigs/templates.js'
import type { EngineWork, SpiderRunning, StartSpider } from './work/work-runner.js'

/** What one crawl did. */
export type CrawlResult =
  | {
      readonly action: 'engine-completed' | 'engine-started' | 'engine-unblocked'
      readonly rigId: string
      readonly engineId: string
    }
  | { readonly action: 'engine-blocked'; readonly rigId: string; readonly engineId: string; readonly blockType: string }
  | {
      readonly action: 'engine-skipped'
      readonly rigId: string
      readonly engineId: string
      /** Conditional engines that were skipped with it. */
      readonly cascadeSkipped?: readonly string[]
    }
  | {
      /** It ran on beside one that failed, and ended in a rig that was stuck already. */
      readonly action: 'engine-ended'
      readonly rigId: string
      readonly engineId: string
      readonly status: 'completed' | 'failed' | 'cancelled'
    }
  | {
      readonly action: 'engine-grafted'
      readonly rigId: string
      readonly engineId: string
      readonly graftedEngineIds: readonly string[]
    }
  | {
      readonly action: 'engine-retrying'
      readonly rigId: string
      readonly engineId: string
      readonly attemptCount: number
    }
  | { readonly action: 'rig-spawned' | 'rig-blocked'; readonly rigId: string; readonly writId: string }
  | {
      readonly action: 'rig-completed'
      readonly rigId: string
      readonly writId: string
      readonly outcome: 'completed' | 'stuck' | 'failed' | 'cancelled'
    }
  | { readonly action: 'writ-unstuck'; readonly writId: string }
  /** Its deadline has passed: it has failed, and its rig was ended. */
  | { readonly action: 'writ-expired'; readonly writId: string }

/** Which rigs. */
export interface RigListing {
  readonly status?: RigStatus
  /** Default: 20. */
  readonly limit?: number
  readonly offset?: number
}

/** Spider: gives writs their rigs and runs the engines in them. */
export interface SpiderApi {
  /** Does the first thing that can be done, and returns what it was; `null` when there is nothing. */
  crawl(): Promise<CrawlResult | null>
  /** The work type of engine runs: make the work system with it, in every process that is to run engines. */
  readonly engineWork: EngineWork
  /** Runs by itself from now on: every engine run is an item of this work system, in any process of the fleet. */
  start(options: StartSpider): SpiderRunning
  /** The rig; rejects when there is none. */
  show(rigId: string): Promise<RigDoc>
  /** Rigs, the newest first. */
  list(listing?: RigListing): Promise<RigDoc[]>
  /** The newest rig of a writ. */
  forWrit(writId: string): Promise<RigDoc | null>
  /** Runs an engine that is blocked or held back again, without waiting any longer. */
  resume(rigId: string, engineId: string): Promise<RigDoc>
  /** Ends a rig. One that has ended is returned as it is. */
  cancel(rigId: string, options?: { readonly reason?: string }): Promise<RigDoc>
  getBlockType(id: string): BlockType | undefined
  listBlockTypes(): BlockTypeInfo[]
  listTemplates(): RigTemplateInfo[]
  listTemplateMappings(): RigTemplateMappingInfo[]
}

/** The Fabricator: the catalogue of engine designs. */
import type { Apparatus } from '../host/plugin.js'
import { createFabricator } from './apparatus.js'

/** A new Fabricator each time it is read, so two guilds in one process do not share one. */
const fabricator: { readonly apparatus: Apparatus } = {
  get apparatus() {
    return createFabricator()
  },
}

// biome-ignore lint/style/noDefaultExport: a plugin is the default export of its package.
export default fabricator

export type {
  BlockRecord,
  CollectedGraft,
  EngineDesign,
  EngineRetry,
  EngineRunContext,
  EngineRunResult,
  RigTemplateEngine,
} from './engine-design.js'
export { type ResolvedEngineRetry, resolveEngineRetry } from './engine-retry.js'
export { DuplicateEngineDesignError, type EngineDesignInfo, type FabricatorApi } from './registry.js'
export { collected, lostInJson } from './yields.js'

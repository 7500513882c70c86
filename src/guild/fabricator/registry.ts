import { MillraceError } from '../../core/error.js'
import { booleanOption, numberOption } from '../../core/options.js'
import { MAX_TIMER_MS } from '../../core/time/clock.js'
import type { KitEntry } from '../host/plugin.js'
import type { EngineDesign } from './engine-design.js'
import { resolveEngineRetry } from './engine-retry.js'

/** A design as it is listed. */
export interface EngineDesignInfo {
  readonly id: string
  /** The plugin that contributed it. */
  readonly pluginId: string
  readonly hasCollect: boolean
}

/** What the Fabricator offers: the catalogue of engine designs. */
export interface FabricatorApi {
  /** The design of this id; `undefined` when no plugin contributed one. */
  getEngineDesign(id: string): EngineDesign | undefined
  /** All of them, in the order of their contribution. */
  listEngineDesigns(): EngineDesignInfo[]
}

/** Two designs have one id. */
export class DuplicateEngineDesignError extends MillraceError {
  constructor(id: string, first: string, second: string) {
    const who = first === second ? `"${first}" contributes it twice` : `"${first}" and "${second}" both contribute it`
    super('DUPLICATE_ENGINE_DESIGN', `The engine design "${id}" is not unique: ${who}. Rename one of them.`, {
      facts: { id, first, second },
    })
  }
}

/**
 * Builds the catalogue from all `engines` contributions. A value without an `id` and a `run` is something else and is left
 * out; two of one id, or a retry policy that cannot be kept, fail startup.
 */
export function engineCatalogue(entries: readonly KitEntry[]): FabricatorApi {
  const designs = new Map<string, { readonly design: EngineDesign; readonly pluginId: string }>()
  for (const { pluginId, value } of entries) {
    if (typeof value !== 'object' || value === null) continue
    for (const design of Object.values(value).filter(isDesign)) {
      const first = designs.get(design.id)
      if (first !== undefined) throw new DuplicateEngineDesignError(design.id, first.pluginId, pluginId)
      checkDesign(design, `${pluginId}: engine design "${design.id}"`)
      designs.set(design.id, { design, pluginId })
    }
  }
  return Object.freeze({
    getEngineDesign: (id: string) => designs.get(id)?.design,
    listEngineDesigns: () =>
      [...designs].map(([id, { design, pluginId }]) => ({ id, pluginId, hasCollect: design.collect !== undefined })),
  })
}

function checkDesign({ retry, timeoutMs, launchesSessions, carryOver }: EngineDesign, path: string): void {
  resolveEngineRetry(retry, `${path}.retry`)
  if (timeoutMs !== undefined) numberOption(`${path}.timeoutMs`, timeoutMs, { above: 0, max: MAX_TIMER_MS })
  booleanOption(`${path}.launchesSessions`, launchesSessions, false)
  booleanOption(`${path}.carryOver`, carryOver, false)
}

function isDesign(value: unknown): value is EngineDesign {
  if (typeof value !== 'object' || value === null) return false
  const { id, run } = value as Partial<EngineDesign>
  return typeof id === 'string' && id !== '' && typeof run === 'function'
}

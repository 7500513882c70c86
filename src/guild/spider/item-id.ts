import type { EngineRow } from './rig.js'

/** `rigId/engineId/attempt`, and how often that attempt was resumed: each of these is one item. */
export function itemId({ rigId, engineId, resumes = 0 }: EngineRow, attempt: number): string {
  return `${rigId}/${engineId}/${attempt}${resumes === 0 ? '' : `+${resumes}`}`
}

/** The item of an engine's present try. */
export const itemOf = (engine: EngineRow): string => itemId(engine, (engine.attemptCount ?? 0) + 1)

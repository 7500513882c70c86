import type { Redacted } from '../../core/redact.js'
import type { WritDoc } from '../../guild/clerk/writ.js'
import type { EngineRow } from '../../guild/spider/rig.js'
import type { Rig } from './rig-report.js'
import { spiderStatus } from './writ-facts.js'

/** A writ as it may be shown: its body is what it was given, its resolution what came of it, and Spider's detail an error. */
export function shownWrit(writ: WritDoc, redacted: Redacted): WritDoc {
  const { resolution, body, status } = writ
  const { detail } = spiderStatus(writ)
  return {
    ...writ,
    body: redacted('input', body, writ),
    ...(resolution === undefined ? {} : { resolution: redacted('result', resolution, writ) }),
    ...(detail === undefined
      ? {}
      : { status: { ...status, spider: { ...spiderStatus(writ), detail: redacted('error', detail, writ) } } }),
  }
}

/** A rig with the errors of its engines as they may be shown: the type is that of the engine's design. */
export function shownRig({ row, engines }: Rig, redacted: Redacted): Rig {
  return { row, engines: engines.map((engine) => shownEngine(row.id, engine, redacted)) }
}

function shownEngine(rigId: string, engine: EngineRow, redacted: Redacted): EngineRow {
  const { error, attempts, engineId, designId } = engine
  const shown = (text: string) => redacted('error', text, { id: `${rigId}/${engineId}`, type: designId })
  return {
    ...engine,
    ...(error === undefined ? {} : { error: shown(error) }),
    ...(attempts === undefined ? {} : { attempts: attempts.map((one) => ({ ...one, error: shown(one.error) })) }),
  }
}

import type { Redacted } from '../../core/text/redact.js'
import type { WritDoc } from '../../guild/clerk/writs/writ.js'
import { spiderStatusOf } from '../../guild/spider/dispatch/writ-status.js'
import type { EngineRow } from '../../guild/spider/rigs/rig.js'
import type { Rig } from './rig-report.js'

/** A writ after `redact`: its body counts as input, its resolution as result, and Spider's detail as error. */
export function shownWrit(writ: WritDoc, redacted: Redacted): WritDoc {
  const { resolution, body, status } = writ
  const { detail } = spiderStatusOf(writ)
  return {
    ...writ,
    body: redacted('input', body, writ),
    ...(resolution === undefined ? {} : { resolution: redacted('result', resolution, writ) }),
    ...(detail === undefined
      ? {}
      : { status: { ...status, spider: { ...spiderStatusOf(writ), detail: redacted('error', detail, writ) } } }),
  }
}

/** A rig with what its engines say after `redact`, why they failed or wait; the type is that of the engine's design. */
export function shownRig({ row, engines }: Rig, redacted: Redacted): Rig {
  return { row, engines: engines.map((engine) => shownEngine(row.id, engine, redacted)) }
}

function shownEngine(rigId: string, engine: EngineRow, redacted: Redacted): EngineRow {
  const { error, attempts, block, engineId, designId } = engine
  const shown = (text: string) => redacted('error', text, { id: `${rigId}/${engineId}`, type: designId })
  return {
    ...engine,
    ...(error === undefined ? {} : { error: shown(error) }),
    ...(block?.message === undefined ? {} : { block: { ...block, message: shown(block.message) } }),
    ...(attempts === undefined ? {} : { attempts: attempts.map((one) => ({ ...one, error: shown(one.error) })) }),
  }
}

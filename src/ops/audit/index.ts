import { keepAlive } from '../../core/keep-alive.js'
import { booleanOption, functionOption, OptionTypeError, optionsObject } from '../../core/options.js'
import { readBy } from '../acts/asked.js'
import type { Ops } from '../api.js'
import type { Desk } from '../desk.js'
import { AuditRun } from './audit-run.js'

/** Proves that everything which has not ended can end, or tells what cannot. */
export function openAudit(desk: Desk): Pick<Ops, 'audit'> {
  return {
    async audit(options) {
      const { repair, thorough, onProgress, signal } = optionsObject('audit', options, [
        'repair',
        'thorough',
        'onProgress',
        'signal',
      ])
      if (signal !== undefined && !(signal instanceof AbortSignal)) {
        throw new OptionTypeError('audit.signal', 'an AbortSignal', signal)
      }
      const how = {
        repair: repair === undefined ? undefined : readBy('audit.repair', repair),
        onProgress:
          onProgress === undefined ? undefined : functionOption<typeof onProgress>('audit.onProgress', onProgress),
        signal,
        isThorough: booleanOption('audit.thorough', thorough, false),
      }
      desk.inspect('audit')
      const letGo = keepAlive()
      try {
        return await new AuditRun(desk, how).toItsEnd()
      } finally {
        letGo()
      }
    },
  }
}

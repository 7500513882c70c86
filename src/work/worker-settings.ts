import type { WorkerSettings } from '../ports/ledger.js'
import { type ItemRules, policyOf } from './resolve-item.js'
import type { ResolvedSystemOptions } from './system-options.js'

/** How this process is set up, as it tells with its heartbeats: what its items get if nobody says otherwise. */
export function workerSettings({ visibility, keep }: ResolvedSystemOptions, rules: ItemRules): WorkerSettings {
  const types = [...rules.registry.definitions].map(({ type, options: { runTimeout } }) => {
    const retry = policyOf(rules, type)
    return [type, Object.freeze(runTimeout === undefined ? { retry } : { retry, runTimeoutMs: runTimeout })] as const
  })
  return Object.freeze({
    leaseMs: visibility,
    keepMs: Object.freeze({ done: keep.successMs, dead: keep.deadMs }),
    types: Object.freeze(Object.fromEntries(types)),
  })
}

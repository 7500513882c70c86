import type { Clock } from '../../core/time/clock.js'
import type { Ports } from '../../ports/ports.js'

/** When the process that uses the ports comes to grief, counted in calls of its ports from 1. */
export interface Fate {
  /** `dies`: no call after it is ever answered. `stumbles`: that one call fails, and the next ones work. */
  readonly kind: 'dies' | 'stumbles'
  readonly atCall: number
  /** Whether the fateful call still reached the backend: `after` is the lost reply. */
  readonly when: 'before' | 'after'
}

/** Ports that meet their fate, and what became of them. */
export interface MortalPorts {
  readonly ports: Ports
  /** The clock of the same process: its timers die with it. */
  readonly clock: Clock
  readonly calls: () => number
  readonly hasMet: () => boolean
  /** Resolves when the process is dead: race it against what the process was doing. */
  readonly death: Promise<void>
}

/**
 * The same ports as another process would hold them, until it dies. Every function of the three ports is wrapped, optional
 * ones too, and so a ledger can be stopped between any two of its steps.
 */
export function mortal(ports: Ports, clock: Clock, fate: Fate): MortalPorts {
  let calls = 0
  let isDead = false
  let die: () => void = () => undefined
  const death = new Promise<void>((resolve) => {
    die = () => {
      isDead = true
      resolve()
    }
  })
  const never = () => new Promise<never>(() => undefined)
  const failure = (name: string) => new Error(`${name} failed on purpose, ${fate.when} it reached the backend`)

  const wrap = <T extends object>(port: T, names: readonly (keyof T & string)[]): T => {
    const wrapped: Record<string, unknown> = {}
    for (const name of names) {
      const method: unknown = port[name]
      if (typeof method !== 'function') {
        if (method !== undefined) wrapped[name] = method
        continue
      }
      // Subscribing is no step of a commit. The listener ignores messages once the process is dead.
      if (name === 'subscribe') {
        wrapped[name] = (hear: (message: string) => void) =>
          method((message: string) => {
            if (!isDead) hear(message)
          })
        continue
      }
      wrapped[name] = async (...given: unknown[]) => {
        if (isDead) return never()
        calls += 1
        const isFateful = calls === fate.atCall
        if (isFateful && fate.when === 'before') {
          if (fate.kind === 'stumbles') throw failure(name)
          die()
          return never()
        }
        const answer: unknown = await method(...given)
        if (isDead) return never()
        if (isFateful) {
          if (fate.kind === 'stumbles') throw failure(name)
          die()
          return never()
        }
        return answer
      }
    }
    // Object by object the same shape: what the port has, under the same names.
    return wrapped as T
  }

  return {
    ports: {
      queue: wrap(ports.queue, Object.getOwnPropertyNames(ports.queue) as (keyof typeof ports.queue & string)[]),
      pubsub: wrap(ports.pubsub, ['publish', 'subscribe']),
      store: wrap(ports.store, Object.getOwnPropertyNames(ports.store) as (keyof typeof ports.store & string)[]),
    },
    clock: {
      ...clock,
      now: clock.now,
      monotonic: clock.monotonic,
      after: (ms, run) =>
        clock.after(ms, () => {
          if (!isDead) run()
        }),
      sleep: (ms, signal) => clock.sleep(ms, signal).then(() => (isDead ? never() : undefined)),
    },
    calls: () => calls,
    hasMet: () => calls >= fate.atCall,
    death,
  }
}

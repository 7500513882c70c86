import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type Clock, isClock, systemClock } from '../../core/time/clock.js'
import type { At, Ms } from '../../core/time/time.js'

/**
 * The clock that leases are kept in. It does not step when the machine's time is set, and all processes on one file share it.
 */
export interface LeaseClock {
  /** Which run of the clock it is: a time that was read in another run means nothing in this one. */
  readonly boot: string
  now(): Ms
}

/**
 * The lease clock that belongs to the `now` or `clock` of the backend. Real time: the machine's own. A clock whose timers are not
 * real, as in tests: its monotonic time. A plain function is all that is known of its time: leases follow it, steps included.
 */
export function leaseClockOf(from: (() => At) | Clock, platform: NodeJS.Platform = process.platform): LeaseClock {
  if (!isClock(from) && from !== Date.now) return { boot: 'given time', now: from }
  if (isClock(from) && from.isReal !== true) return { boot: 'given clock', now: () => from.monotonic() }
  const boot = bootId(platform)
  // Where one start of the machine cannot be distinguished from the one before, a lease could outlive it by days: better the time of
  // day, with its steps.
  if (boot === undefined) return { boot: 'time of day', now: systemClock.now }
  // Since the machine has started, the same for every process. performance.now() counts from the start of the process.
  return { boot: `boot ${boot}`, now: () => Number(process.hrtime.bigint() / 1_000_000n) }
}

/** Changes with every start of the machine and with nothing else. Undefined: this system has none. */
function bootId(platform: NodeJS.Platform): string | undefined {
  try {
    const id = readBootId[platform]?.().trim()
    return id === '' ? undefined : id
  } catch {
    return undefined
  }
}

const readBootId: Readonly<Partial<Record<NodeJS.Platform, () => string>>> = {
  linux: () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'),
  darwin: () =>
    execFileSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
}

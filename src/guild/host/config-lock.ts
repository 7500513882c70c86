import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { newToken } from '../../core/ids.js'
import { systemClock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'

/** A write takes milliseconds. A lock that is older was left by a process that is gone, on a machine that we cannot ask. */
const STALE_MS: Ms = 10_000
const PAUSE_MS: Ms = 5

/** Proof of having the lock, for as long as one has it. */
export interface HeldLock {
  /** False: this process was stalled for so long that another one considered it dead. */
  isOurs(): boolean
}

/**
 * Runs it while no other process does: the process that makes the file `lock` has the lock. It waits without letting anything else of this
 * process run, because what it guards is a synchronous function. A lock whose process is dead is taken away from it.
 * Undefined: it was not to be had in the time that the longest holder may take.
 */
export function withLock<R>(lock: string, run: (held: HeldLock) => R): { readonly value: R } | undefined {
  const mine = `${process.pid} ${hostname()} ${newToken()}`
  const giveUpAt = systemClock.monotonic() + 2 * STALE_MS
  while (!take(lock, mine)) {
    if (systemClock.monotonic() > giveUpAt) return undefined
    removeStale(lock)
    pause(PAUSE_MS * (0.5 + Math.random()))
  }
  const isOurs = (): boolean => contents(lock) === mine
  try {
    return { value: run({ isOurs }) }
  } finally {
    if (isOurs()) rmSync(lock, { force: true })
  }
}

function take(lock: string, mine: string): boolean {
  let file: number
  try {
    file = openSync(lock, 'wx')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  try {
    writeSync(file, mine)
  } finally {
    closeSync(file)
  }
  return true
}

function removeStale(lock: string): void {
  const holder = contents(lock)
  if (holder === undefined || !isStale(lock, holder)) return
  // Two may find it stale at the same time: it is moved away, which only one of them can, and then is that one's to remove.
  const away = `${lock}.${process.pid}.stale`
  try {
    renameSync(lock, away)
  } catch {
    return
  }
  // A third one was faster and this is its lock: it goes back, and if yet another has come, its writer finds it gone and starts again.
  if (contents(away) !== holder && contents(lock) === undefined) renameSync(away, lock)
  else rmSync(away, { force: true })
}

function isStale(lock: string, holder: string): boolean {
  const madeAt = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
  if (madeAt === undefined) return false
  if (systemClock.now() - madeAt > STALE_MS) return true
  const [pid, host] = holder.split(' ')
  return host === hostname() && !isAlive(Number(pid))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function contents(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function pause(ms: Ms): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

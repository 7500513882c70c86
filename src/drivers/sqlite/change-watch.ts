import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../core/time/clock.js'
import type { Ms } from '../../core/time/time.js'

/** How often the version is polled, in case the file system reports nothing. */
export const POLL_MS: Ms = 250

/**
 * Notices that another connection has changed the file: the file system reports writes to the log immediately, and the version
 * that SQLite keeps is polled in case it does not. Our own writes do not count.
 */
export class ChangeWatch {
  readonly #file: string
  readonly #clock: Clock
  readonly #version: () => number
  readonly #changed: () => void
  #last: number
  #watcher: FSWatcher | undefined
  #cancel: (() => void) | undefined
  #isAsked = false

  constructor(file: string, clock: Clock, version: () => number, changed: () => void) {
    this.#file = file
    this.#clock = clock
    this.#version = version
    this.#changed = changed
    this.#last = version()
    this.#listen()
    this.#arm()
  }

  /** Checks now. */
  check(): void {
    let version: number
    try {
      version = this.#version()
    } catch {
      // A process that was killed in the middle of its write may leave the index of the log unreadable for a moment. The
      // next poll checks again; callers that use the file get the error.
      return
    }
    if (version === this.#last) return
    this.#last = version
    this.#changed()
  }

  close(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#cancel?.()
    this.#cancel = undefined
  }

  #listen(): void {
    try {
      this.#watcher = watch(`${this.#file}-wal`, { persistent: false }, () => this.#ask())
      // It was removed, or the system has no watches left: polling is slower, and enough.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // As above.
    }
  }

  /** Many events of one turn cause one check. */
  #ask(): void {
    if (this.#isAsked) return
    this.#isAsked = true
    setImmediate(() => {
      this.#isAsked = false
      if (this.#cancel !== undefined) this.check()
    })
  }

  #arm(): void {
    this.#cancel = this.#clock.after(POLL_MS, () => {
      this.#arm()
      this.check()
    })
  }
}

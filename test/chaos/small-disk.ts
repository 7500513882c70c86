import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'

const ROOMY = '4g'
const ATTEMPTS = 20
const SLACK_BYTES = 256 * 1024

/** A file system in memory that can be full: no write that needs a new page succeeds there until there is room again. */
export class SmallDisk {
  readonly #dir: string
  #isMounted = true
  readonly #unmount = () => this.close()

  private constructor(dir: string) {
    this.#dir = dir
    process.once('exit', this.#unmount)
  }

  /** Where this user may mount: it takes root on Linux, and not in every container. */
  static isPossible(): boolean {
    const dir = join(mkdtempSync(join(tmpdir(), 'millrace-disk-')), 'disk')
    const disk = SmallDisk.open(dir)
    disk?.close()
    rmSync(dirname(dir), { recursive: true })
    return disk !== undefined
  }

  /** Undefined where it is not possible. */
  static open(dir: string): SmallDisk | undefined {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
    mkdirSync(dir)
    try {
      mount('-t', 'tmpfs', '-o', `size=${ROOMY}`, 'millrace-chaos', dir)
      return new SmallDisk(dir)
    } catch {
      // Root of a container that may not mount.
      rmdirSync(dir)
      return undefined
    }
  }

  /** From here on there is no room for another page. */
  fill(database: string): void {
    emptyLog(database)
    for (let attempt = 1; ; attempt += 1) {
      const { blocks, bfree, bsize } = statfsSync(this.#dir)
      try {
        // A little more each time, which is soon written: on a busy machine it grows while the command starts.
        mount('-o', `remount,size=${(blocks - bfree) * bsize + (attempt - 1) * SLACK_BYTES}`, this.#dir)
        return
      } catch (error) {
        // It cannot be smaller than what it holds.
        if (attempt === ATTEMPTS) throw error
      }
    }
  }

  empty(): void {
    mount('-o', `remount,size=${ROOMY}`, this.#dir)
  }

  /** Stays mounted when this process ends, so that it can be inspected. */
  keep(): void {
    this.#isMounted = false
  }

  close(): void {
    if (!this.#isMounted) return
    this.#isMounted = false
    process.off('exit', this.#unmount)
    execFileSync('umount', ['-l', this.#dir], { stdio: 'ignore' })
  }
}

function mount(...args: string[]): void {
  execFileSync('mount', args, { stdio: 'ignore' })
}

/** A write-ahead log is written from its start again and again, and needs no new page while it is long enough. */
function emptyLog(database: string): void {
  const db = new Database(database, { timeout: 1_000 })
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
  } finally {
    db.close()
  }
}

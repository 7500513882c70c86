import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { MillraceError } from '../../core/error.js'
import { type HeldLock, withLock } from './config-lock.js'
import { ConfigChangedError, GuildConfigError } from './errors.js'
import type { GuildConfig } from './guild.js'
import { checkConfig } from './options.js'

const FILE = 'guild.json'

/** The nearest folder, from `start` upwards, that holds `guild.json`. */
export function findRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, FILE))) return folder
    if (dirname(folder) === folder) {
      throw new GuildConfigError(
        join(start, FILE),
        'there is no guild.json here or in a folder above. Make one, or give createGuild() a root, a config or plugins.',
      )
    }
  }
}

/** Where a guild's configuration is kept: in memory, and on disk when it came from there. */
export interface ConfigKeeper {
  /** How errors name it. */
  readonly path: string
  readonly current: GuildConfig
  /** Replaces the part of one plugin; `undefined` removes it. */
  write(pluginId: string, value: unknown): void
}

/** A configuration that was given, and lives in memory only. */
export function inlineConfig(given: GuildConfig): ConfigKeeper {
  let current: GuildConfig = { ...given }
  return {
    path: 'createGuild().config',
    get current() {
      return current
    },
    write(pluginId, value) {
      current = withPart(current, pluginId, value)
    },
  }
}

/** How often a write starts again that was stalled for so long that another process took its lock. */
const TRIES = 5

/**
 * The configuration in a folder. A write replaces the file in one step, so no process ever reads half of it, and under a lock, so
 * no two processes write at the same time. Parts that others changed in the meantime are kept; if they changed the very part that is
 * written, the write is refused.
 */
export function configOnDisk(folder: string, options: { readonly mayBeMissing: boolean }): ConfigKeeper {
  const path = join(folder, FILE)
  const known = read(path)
  if (known === undefined && !options.mayBeMissing) {
    throw new GuildConfigError(path, 'it is not there. Make one, or give createGuild() a config.')
  }
  let current = known ?? {}
  return {
    path,
    get current() {
      return current
    },
    write(pluginId, value) {
      const writeOnce = (held: HeldLock): boolean => {
        const onDisk = read(path) ?? {}
        if (!isDeepStrictEqual(onDisk[pluginId], current[pluginId])) throw new ConfigChangedError(path, pluginId)
        const next = withPart(onDisk, pluginId, value)
        if (!replaceFile(path, `${JSON.stringify(next, null, 2)}\n`, held)) return false
        current = next
        return true
      }
      for (let tries = 0; tries < TRIES; tries += 1) if (locked(path, writeOnce)) return
      throw new GuildConfigError(path, 'other processes kept taking its lock while it was being written. Try again.')
    },
  }
}

function read(path: string): GuildConfig | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new GuildConfigError(path, 'it cannot be read', { cause: error })
  }
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch (error) {
    throw new GuildConfigError(path, `it is not JSON: ${(error as Error).message}`, { cause: error })
  }
  checkConfig(path, config)
  return config
}

function withPart(config: GuildConfig, pluginId: string, value: unknown): GuildConfig {
  if (value === undefined) {
    const { [pluginId]: _removed, ...rest } = config
    return rest
  }
  return { ...config, [pluginId]: value }
}

/** A link stays a link: the file behind it is locked and replaced. */
const behindLink = (path: string): string => (existsSync(path) ? realpathSync(path) : path)

function locked<R>(path: string, run: (held: HeldLock) => R): R {
  const lock = `${behindLink(path)}.lock`
  let done: { readonly value: R } | undefined
  try {
    done = withLock(lock, run)
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw new GuildConfigError(path, `its lock ${lock} cannot be made`, { cause: error })
  }
  if (done === undefined)
    throw new GuildConfigError(path, `another process holds ${lock}. If there is none, remove that file.`)
  return done.value
}

/** False: the lock was lost meanwhile, and nothing was written. */
function replaceFile(path: string, text: string, held: HeldLock): boolean {
  const target = behindLink(path)
  const mode = statSync(target, { throwIfNoEntry: false })?.mode ?? 0o644
  const fresh = `${target}.${process.pid}.tmp`
  try {
    const file = openSync(fresh, 'w', mode & 0o777)
    try {
      writeSync(file, text)
      // Before the rename: otherwise a power cut may leave the new name with no contents.
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (!held.isOurs()) {
      rmSync(fresh, { force: true })
      return false
    }
    renameSync(fresh, target)
    return true
  } catch (error) {
    rmSync(fresh, { force: true })
    throw new GuildConfigError(path, 'it cannot be written', { cause: error })
  }
}

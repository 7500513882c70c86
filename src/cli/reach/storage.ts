import { MillraceError } from '../../core/error.js'
import { durationText } from '../../ops/duration-text.js'
import type { Needs } from './ops-on.js'
import type { Migrated, StoragePart } from './reached.js'

/** What changed between two looks at the versions. */
export function migrated(before: readonly StoragePart[], after: readonly StoragePart[]): Migrated[] {
  return after
    .filter(({ version }) => version > 0)
    .map(({ part, version }) => ({ part, from: versionOf(before, part), to: version }))
}

export function versionOf(storage: readonly StoragePart[], part: StoragePart['part']): number {
  return storage.find((one) => one.part === part)?.version ?? 0
}

/** There is nothing of Millrace where somebody looked. */
export class NothingThereError extends MillraceError {
  constructor(where: string, why: string, next: string) {
    super('NOTHING_THERE', `${why} Nothing was created by looking. ${next}`, { facts: { where } })
  }
}

/** The tables are older or newer than this program. */
class StorageVersionError extends MillraceError {
  constructor(name: string, { part, version, latest, minReader }: StoragePart) {
    const isNewer = minReader > latest
    super(
      isNewer ? 'SCHEMA_TOO_NEW' : 'SCHEMA_TOO_OLD',
      isNewer
        ? `The tables of ${part} at ${name} have version ${version}, and programs of version ${minReader} or later can read them; this one has ${latest}. Use the millrace of your workers.`
        : `The tables of ${part} at ${name} have version ${version}; this program needs ${latest}. Migrate them with \`millrace migrate\` (older workers go on), or use the millrace of your workers.`,
      { facts: { part, version, latest, minReader } },
    )
  }
}

/** Refuses to look where the tables are not there, or are not for this program: whatever came next would say it worse. */
export function checkVersions(name: string, storage: readonly StoragePart[], { guild }: Needs): void {
  for (const one of storage) {
    // The documents of a guild may stand in a file of their own, without work.
    if (one.part !== (guild ? 'guild' : 'work')) continue
    if (one.version === 0)
      throw guild
        ? new NothingThereError(name, `There are no documents of a guild at ${name}.`, GUILD_NEXT)
        : new NothingThereError(name, `There are no tables of Millrace at ${name}.`, WORK_NEXT)
    if (one.version < one.latest || one.minReader > one.latest) throw new StorageVersionError(name, one)
  }
}

/** Refuses to speak of what is pending where the tables are those of a later program. */
export function checkNotTooNew(name: string, storage: readonly StoragePart[]): void {
  for (const one of storage) if (one.minReader > one.latest) throw new StorageVersionError(name, one)
}

const GUILD_NEXT =
  'Name the file or database of its Stacks as --backend; by itself a guild makes the file stacks.sqlite.'
const WORK_NEXT =
  'Check the address, --schema and --prefix. If they are right: `millrace migrate` makes the tables, and so does a worker when it starts.'

/** The server did not answer for so long that nobody would wait on. */
export class NoAnswerError extends MillraceError {
  constructor(name: string, afterMs: number) {
    super(
      'NO_ANSWER',
      `${name} has not answered within ${durationText(afterMs)}. Look at the address, the server and what is between; --timeout says how long it may take.`,
      { facts: { afterMs } },
    )
  }
}

/** The guild keeps its documents elsewhere. */
export class NoGuildHereError extends MillraceError {
  constructor() {
    super(
      'NO_GUILD',
      'The guild keeps no documents on Redis. Give the SQLite file or the PostgreSQL database of its Stacks as --backend.',
    )
  }
}

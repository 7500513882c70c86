import { MillraceError } from '../../core/error.js'
import { durationText } from '../../ops/duration-text.js'
import type { Migrated, StoragePart } from './connected.js'
import type { Needs } from './ops-on.js'

/** The difference between two reads of the versions. */
export function migrated(before: readonly StoragePart[], after: readonly StoragePart[]): Migrated[] {
  return after
    .filter(({ version }) => version > 0)
    .map(({ part, version }) => ({ part, from: versionOf(before, part), to: version }))
}

export function versionOf(storage: readonly StoragePart[], part: StoragePart['part']): number {
  return storage.find((one) => one.part === part)?.version ?? 0
}

/** There are no Millrace tables at that address. */
export class NothingThereError extends MillraceError {
  constructor(where: string, why: string, next: string) {
    super('NOTHING_THERE', `${why} Nothing was created. ${next}`, { facts: { where } })
  }
}

/** The tables are older or newer than this program. */
class StorageVersionError extends MillraceError {
  constructor(name: string, { part, version, latest, minReader }: StoragePart) {
    const isNewer = minReader > latest
    super(
      isNewer ? 'SCHEMA_TOO_NEW' : 'SCHEMA_TOO_OLD',
      isNewer
        ? `The tables of ${part} at ${name} have version ${version}, which needs a program of version ${minReader} or later; this one has ${latest}. Use the millrace version of your workers.`
        : `The tables of ${part} at ${name} have version ${version}; this program needs ${latest}. Migrate them with \`millrace migrate\` (older workers keep running), or use the millrace version of your workers.`,
      { facts: { part, version, latest, minReader } },
    )
  }
}

/** Rejects missing tables and tables of another version, because later errors would be less clear. */
export function checkVersions(name: string, storage: readonly StoragePart[], { guild }: Pick<Needs, 'guild'>): void {
  if (guild === 'if there') {
    const isThere = (part: StoragePart['part']) => versionOf(storage, part) > 0
    if (isThere('work') || !isThere('guild')) checkVersions(name, storage, { guild: false })
    if (isThere('guild')) checkVersions(name, storage, { guild: true })
    return
  }
  for (const one of storage) {
    // The documents of a guild may be in their own file, without work.
    if (one.part !== (guild ? 'guild' : 'work')) continue
    if (one.version === 0)
      throw guild
        ? new NothingThereError(name, `There are no guild documents at ${name}.`, GUILD_NEXT)
        : new NothingThereError(name, `There are no Millrace tables at ${name}.`, WORK_NEXT)
    if (one.version < one.latest || one.minReader > one.latest) throw new StorageVersionError(name, one)
  }
}

/** Which parts a command gets, of those that are there. */
export function partsFor(
  storage: readonly StoragePart[],
  { guild }: Pick<Needs, 'guild'>,
): { readonly hasGuild: boolean; readonly hasWork: boolean } {
  if (guild !== 'if there') return { hasGuild: guild, hasWork: true }
  return { hasGuild: versionOf(storage, 'guild') > 0, hasWork: versionOf(storage, 'work') > 0 }
}

/** Rejects tables of a later program, for which pending migrations make no sense. */
export function checkNotTooNew(name: string, storage: readonly StoragePart[]): void {
  for (const one of storage) if (one.minReader > one.latest) throw new StorageVersionError(name, one)
}

const GUILD_NEXT =
  'Give the file or database of its Stacks as --backend; by default a guild creates the file stacks.sqlite.'
const WORK_NEXT =
  'Check the address, --schema and --prefix. If they are right, `millrace migrate` creates the tables; so does a worker when it starts.'

/** The server did not answer in time. */
export class NoAnswerError extends MillraceError {
  constructor(name: string, afterMs: number) {
    super(
      'NO_ANSWER',
      `${name} did not answer within ${durationText(afterMs)}. Check the address, the server and the network; --timeout sets how long to wait.`,
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

import { isDeepStrictEqual } from 'node:util'
import type { ReadOnlyBook, StacksApi } from './api.js'

/** The book in which a plugin publishes its settings, among its `books`. */
export const SETTINGS_BOOK = { settings: { indexes: [] } } as const

const ID = 'guild'

interface SettingsDoc {
  readonly id: typeof ID
  readonly value: unknown
}

/**
 * Publishes what the processes of a guild have configured a plugin with, for processes that write to the store without loading its
 * plugins. The process that started last decides, unless it leaves the decision to what is `known`; nothing is written where nothing has
 * changed.
 */
export async function publishSettings<T extends object>(
  stacks: StacksApi,
  ownerId: string,
  settings: T,
  leavesTo: (known: T) => boolean = () => false,
): Promise<void> {
  const book = stacks.book<SettingsDoc>(ownerId, 'settings')
  const value: unknown = JSON.parse(JSON.stringify(settings))
  await stacks.transaction(async () => {
    const known = await book.get(ID)
    // Written by this same call, of another process.
    if (known !== null && leavesTo(known.value as T)) return
    if (!isDeepStrictEqual(known?.value, value)) await book.put({ id: ID, value })
  })
}

/** What was published under that name; undefined when no such process has started on this store. */
export async function publishedSettings<T>(
  stacks: { readBook<D extends SettingsDoc>(ownerId: string, name: string): ReadOnlyBook<D> },
  ownerId: string,
): Promise<T | undefined> {
  // Written by `publishSettings` of the same plugin, which knows the type.
  return (await stacks.readBook<SettingsDoc>(ownerId, 'settings').get(ID))?.value as T | undefined
}

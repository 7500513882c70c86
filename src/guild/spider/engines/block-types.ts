import type { ClerkApi } from '../../clerk/api.js'
import type { WritDoc } from '../../clerk/writs/writ.js'
import type { KitEntry } from '../../host/plugin.js'
import type { ReadOnlyBook, StacksApi } from '../../stacks/api.js'
import type { BookEntry } from '../../stacks/documents/value.js'
import { SpiderConfigError } from '../errors.js'
import type { InputRequestDoc } from '../rigs/rig.js'

/** What a check found. */
export interface BlockCheck {
  readonly status: 'cleared' | 'pending' | 'failed'
  readonly reason?: string
}

/** Something that an engine can wait for. Plugins contribute them under `blockTypes`, as a record. */
export interface BlockType {
  readonly id: string
  /** Checks a condition and returns it; throws when it cannot be used. */
  readonly conditionSchema: { parse(condition: unknown): unknown }
  check(condition: unknown): Promise<BlockCheck>
  /** The least time between two checks. Default: at every crawl. */
  readonly pollIntervalMs?: number
  /** Completes a condition when an engine blocks, with what a later check compares. */
  prepare?(condition: unknown): Promise<unknown>
}

/** A block type as it is listed. */
export interface BlockTypeInfo {
  readonly id: string
  readonly pluginId: string
  readonly pollIntervalMs: number
}

export class BlockTypes {
  readonly #types = new Map<string, { readonly type: BlockType; readonly pluginId: string }>()

  constructor(entries: readonly KitEntry[], builtIn: readonly BlockType[]) {
    for (const type of builtIn) this.#add('spider', type)
    for (const { pluginId, value } of entries)
      for (const type of Object.values(value ?? {}) as unknown[]) if (isBlockType(type)) this.#add(pluginId, type)
  }

  get(id: string): BlockType | undefined {
    return this.#types.get(id)?.type
  }

  list(): BlockTypeInfo[] {
    return [...this.#types.values()].map(({ type, pluginId }) => ({
      id: type.id,
      pluginId,
      pollIntervalMs: type.pollIntervalMs ?? 0,
    }))
  }

  #add(pluginId: string, type: BlockType): void {
    const first = this.#types.get(type.id)
    if (first !== undefined)
      throw new SpiderConfigError(
        `The block type "${type.id}" is not unique: "${first.pluginId}" and "${pluginId}" contribute it. Rename one.`,
        { id: type.id },
      )
    this.#types.set(type.id, { type, pluginId })
  }
}

function isBlockType(value: unknown): value is BlockType {
  if (typeof value !== 'object' || value === null) return false
  const { id, check, conditionSchema } = value as Partial<BlockType>
  return (
    typeof id === 'string' && id !== '' && typeof check === 'function' && typeof conditionSchema?.parse === 'function'
  )
}

/** The block types that Spider brings along. */
export function builtInBlockTypes(stacks: StacksApi, clerk: ClerkApi, now: () => number): BlockType[] {
  const writs = stacks.readBook<WritDoc>('clerk', 'writs')
  const requests = stacks.readBook<InputRequestDoc>('spider', 'input-requests')
  return [
    blockType<{ writId: string; targetPhase: string }>(
      'writ-phase',
      10_000,
      ['writId', 'targetPhase'],
      async (condition) => {
        const writ = await writs.get(condition.writId)
        if (writ === null) return { status: 'failed', reason: `writ ${condition.writId} is missing` }
        if (writ.phase === condition.targetPhase) return { status: 'cleared' }
        return clerk.isTerminal(writ)
          ? { status: 'failed', reason: `writ ${writ.id} ended as ${writ.phase}` }
          : { status: 'pending' }
      },
    ),
    {
      id: 'scheduled-time',
      pollIntervalMs: 30_000,
      conditionSchema: {
        parse: (condition) => {
          const { resumeAt } = textFields(condition, ['resumeAt'])
          if (Number.isNaN(Date.parse(resumeAt ?? ''))) throw new TypeError('resumeAt must be a date in ISO 8601')
          return { resumeAt }
        },
      },
      check: async (condition) => {
        const due = Date.parse((condition as { resumeAt: string }).resumeAt)
        return { status: now() >= due ? 'cleared' : 'pending' }
      },
    },
    bookUpdated(stacks),
    blockType<{ requestId: string }>('patron-input', 10_000, ['requestId'], async ({ requestId }) => {
      const request = await requests.get(requestId)
      if (request === null) return { status: 'failed', reason: `input request ${requestId} is missing` }
      if (request.status === 'pending') return { status: 'pending' }
      return request.status === 'completed'
        ? { status: 'cleared' }
        : { status: 'failed', reason: request.message ?? `input request ${requestId} was rejected` }
    }),
  ]
}

/** Waits until a book, or a document of it, is not as it was when the engine blocked. */
function bookUpdated(stacks: StacksApi): BlockType {
  return {
    id: 'book-updated',
    pollIntervalMs: 10_000,
    conditionSchema: {
      parse: (condition) => {
        const { documentId, seen } = (condition ?? {}) as { documentId?: unknown; seen?: unknown }
        if (documentId !== undefined && (typeof documentId !== 'string' || documentId === ''))
          throw new TypeError('documentId must be a non-empty string')
        const names = textFields(condition, ['ownerId', 'book'])
        // Throws when there can be no such book.
        stacks.readBook(names['ownerId'] ?? '', names['book'] ?? '')
        return {
          ...names,
          ...(documentId === undefined ? {} : { documentId }),
          ...(seen === undefined ? {} : { seen }),
        }
      },
    },
    prepare: async (condition) => {
      const { ownerId, book, documentId, seen } = condition as Readonly<Record<string, string>>
      return {
        ...(condition as object),
        seen: seen ?? (await bookState(stacks.readBook(ownerId ?? '', book ?? ''), documentId)),
      }
    },
    check: async (condition) => {
      const { ownerId, book, documentId, seen } = condition as Readonly<Record<string, string>>
      const now = await bookState(stacks.readBook(ownerId ?? '', book ?? ''), documentId)
      return { status: now === seen ? 'pending' : 'cleared' }
    },
  }
}

/** What `book-updated` compares: the revision of the document, or the number of documents and the latest by `updatedAt`. */
async function bookState(book: ReadOnlyBook<BookEntry>, documentId?: string): Promise<string> {
  if (documentId !== undefined) return (await book.rev(documentId)) ?? 'absent'
  const [latest] = await book.find({ orderBy: ['updatedAt', 'desc'], limit: 1 })
  return `${await book.count()}:${latest === undefined ? '' : await book.rev(latest.id)}`
}

function blockType<C>(
  id: string,
  pollIntervalMs: number,
  fields: string[],
  check: (c: C) => Promise<BlockCheck>,
): BlockType {
  return {
    id,
    pollIntervalMs,
    conditionSchema: { parse: (condition) => textFields(condition, fields) },
    check: (condition) => check(condition as C),
  }
}

function textFields(condition: unknown, fields: readonly string[]): Readonly<Record<string, string>> {
  const given = (typeof condition === 'object' && condition !== null ? condition : {}) as Record<string, unknown>
  return Object.fromEntries(
    fields.map((field) => {
      const value = given[field]
      if (typeof value !== 'string' || value === '') throw new TypeError(`${field} must be a non-empty string`)
      return [field, value]
    }),
  )
}

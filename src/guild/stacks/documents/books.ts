import type { Book, PatchOf, ReadOnlyBook } from '../api.js'
import type { BackendReads } from '../backend.js'
import { parseQuery, parseWhere } from '../query/parse-query.js'
import type { BookRef } from './names.js'
import { type BookEntry, canonicalDoc, canonicalFields, checkId, type Doc, type PatchFields } from './value.js'

/** What a write does to a document. */
export type Write =
  | { readonly kind: 'put'; readonly doc: Doc; readonly ifRev: string | null | undefined }
  | { readonly kind: 'patch'; readonly id: string; readonly fields: PatchFields; readonly ifRev: string | undefined }
  | { readonly kind: 'delete'; readonly id: string; readonly ifRev: string | undefined }

/** What handles need of the store: where their reads and writes go. */
export interface BookHost {
  readonly maxDocumentBytes: number
  read<T>(run: (reads: BackendReads) => Promise<T>): Promise<T>
  /** Returns the document as it is now; null when it was deleted. */
  write(ref: BookRef, write: Write): Promise<Doc | null>
}

/** A handle that can only read: it has no other methods. */
export function readHandle<T extends BookEntry>(host: BookHost, ref: BookRef): ReadOnlyBook<T> {
  return {
    async get(id) {
      checkId(id, 'id')
      const stored = await host.read((reads) => reads.get(ref, id))
      return stored === null ? null : typed<T>(stored.doc)
    },
    async find(query) {
      const parsed = parseQuery(query)
      return (await host.read((reads) => reads.find(ref, parsed))).map(typed<T>)
    },
    async list(options = {}) {
      const parsed = parseQuery(options, 'list()')
      return (await host.read((reads) => reads.find(ref, parsed))).map(typed<T>)
    },
    async count(where) {
      const filter = parseWhere(where)
      return host.read((reads) => reads.count(ref, filter))
    },
    async rev(id) {
      checkId(id, 'id')
      return (await host.read((reads) => reads.get(ref, id)))?.rev ?? null
    },
  }
}

/** A handle that reads and writes. */
export function writeHandle<T extends BookEntry>(host: BookHost, ref: BookRef): Book<T> {
  return {
    ...readHandle<T>(host, ref),
    async put(doc, options) {
      await host.write(ref, {
        kind: 'put',
        doc: canonicalDoc(doc, host.maxDocumentBytes),
        ifRev: options?.ifRev,
      })
    },
    async patch(id, fields: PatchOf<T>, options) {
      checkId(id, 'id')
      const write = { kind: 'patch', id, fields: canonicalFields(fields), ifRev: options?.ifRev } as const
      // A patch that resolves has a document to return.
      return typed<T>((await host.write(ref, write)) as Doc)
    },
    async delete(id, options) {
      checkId(id, 'id')
      await host.write(ref, { kind: 'delete', id, ifRev: options?.ifRev })
    },
  }
}

/** The owner of a book declares the type of its documents; the store keeps JSON. */
function typed<T extends BookEntry>(doc: Doc): T {
  return doc as unknown as T
}

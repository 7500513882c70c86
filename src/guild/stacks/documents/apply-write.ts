import { newToken } from '../../../core/ids.js'
import { unreachable } from '../../../core/unreachable.js'
import type { BackendTx, Stored } from '../backend.js'
import { DocumentNotFoundError, StaleWriteError } from '../errors.js'
import type { Write } from './books.js'
import type { BookRef } from './names.js'
import { checkSize, type Doc, patched } from './value.js'

/** What a write changed: the document before and after it. */
export interface WrittenChange {
  readonly id: string
  readonly prev: Doc | null
  readonly now: Doc | null
}

/** Writes one document in a transaction of the backend. */
export async function applyWrite(
  tx: BackendTx,
  ref: BookRef,
  write: Write,
  maxDocumentBytes: number,
): Promise<WrittenChange> {
  switch (write.kind) {
    case 'put': {
      const { doc, ifRev } = write
      const locked = ifRev === undefined ? undefined : await tx.lock(ref, doc.id)
      if (ifRev !== undefined) checkRev(ref, doc.id, locked ?? null, ifRev)
      return { id: doc.id, prev: await tx.put(ref, doc, newToken(), locked), now: doc }
    }
    case 'patch': {
      const { id, fields, ifRev } = write
      const stored = await tx.lock(ref, id)
      if (ifRev !== undefined) checkRev(ref, id, stored, ifRev)
      if (stored === null) throw new DocumentNotFoundError(ref.ownerId, ref.book, id)
      const now = patched(stored.doc, fields)
      checkSize(now, maxDocumentBytes)
      await tx.put(ref, now, newToken(), stored)
      return { id, prev: stored.doc, now }
    }
    case 'delete': {
      const { id, ifRev } = write
      if (ifRev !== undefined) checkRev(ref, id, await tx.lock(ref, id), ifRev)
      return { id, prev: await tx.delete(ref, id), now: null }
    }
    default:
      return unreachable(write)
  }
}

function checkRev(ref: BookRef, id: string, stored: Stored | null, ifRev: string | null): void {
  const rev = stored?.rev ?? null
  if (rev !== ifRev) throw new StaleWriteError(ref.ownerId, ref.book, id, rev)
}

import { closeSync, openSync, readSync } from 'node:fs'

/** How much of a file identifies it. */
const HEADER_BYTES = 20
/** The header byte of the journal mode: 2 is a write-ahead log, which Millrace always uses. */
const WRITE_VERSION = 18
const WAL = 2

/** What the first bytes of a file say of it. To open the file could change its journal mode for its other users. */
export function readHeader(file: string): { readonly isSqlite: boolean; readonly isWal: boolean } {
  const header = Buffer.alloc(HEADER_BYTES)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0)
  } finally {
    closeSync(handle)
  }
  return { isSqlite: header.toString('latin1').startsWith('SQLite format 3\0'), isWal: header[WRITE_VERSION] === WAL }
}

import { readFileSync } from 'node:fs'
import { memoryBackend } from 'millrace'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { describeLightLists } from './light-lists-suite.js'

describeLightLists('memory', async () => {
  const full = memoryBackend()
  return { full, again: async () => ({ backend: full }), close: () => full.close() }
})

/** What this thread has read from files, where the system reports it. */
const readByThread = (): number =>
  Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/thread-self/io', 'utf8'))?.[1] ?? Number.NaN)

describeLightLists('SQLite', async () => {
  const file = temporaryFile()
  const full = sqliteBackend({ file })
  const opened = [full]
  return {
    full,
    again: async () => {
      const backend = sqliteBackend({ file })
      opened.push(backend)
      return {
        backend,
        async bytesOf(call) {
          if (process.platform !== 'linux') return undefined
          const before = readByThread()
          await call()
          return readByThread() - before
        },
      }
    },
    close: async () => {
      for (const backend of opened) await backend.close()
    },
  }
})

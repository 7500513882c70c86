import { describe, it } from 'vitest'
import { sqliteBackend } from '../../../src/backends/sqlite/index.js'
import { describeBackend } from '../../../src/testing/conformance/describe-backend.js'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { ledgerOn, openFile, temporaryFile } from './open-file.js'

const test = { describe, it }

describeBackend({ name: 'sqlite', test, open: (clock) => openFile({ clock }) })

// A second process is another connection: it shares nothing with the first but the file.
describeLedger({
  name: 'sqlite (two connections)',
  test,
  without: ['crash points'],
  open: (clock) => {
    const file = temporaryFile()
    const [one, two] = [sqliteBackend({ file, clock }), sqliteBackend({ file, clock })]
    return {
      ledger: ledgerOn(one),
      queue: 'default',
      other: 'conformance',
      again: () => ledgerOn(two),
      pushRaw: (body) => one.queue.push(body),
      close: async () => {
        await one.close()
        await two.close()
      },
    }
  },
})

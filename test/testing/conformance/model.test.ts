import { describe, it } from 'vitest'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { modelLedger } from '../../model/model-ledger.js'

// The model that real ledgers are compared with is itself held to every clause that a ledger in one process can keep.
describeLedger({
  name: 'the model',
  test: { describe, it },
  open: (clock) => ({ ledger: modelLedger(clock.now), queue: 'default', other: 'bulk' }),
  without: ['foreign bodies', 'crash points'],
})

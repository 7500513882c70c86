import { describe, it } from 'vitest'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { inTwoSteps, openPlain, waived, without } from './under-test.js'

describeLedger({
  name: 'plain ports with every optional power',
  test: { describe, it },
  open: (clock) => openPlain('all', clock),
  without,
  waived,
})

describeLedger({
  name: 'plain ports with the documented members',
  test: { describe, it },
  open: (clock) => openPlain('documented', clock),
  stallMs: 0,
  without,
  waived: inTwoSteps,
})

describeLedger({
  name: 'plain ports with the bare obligations',
  test: { describe, it },
  open: (clock) => openPlain('minimal', clock),
  stallMs: 0,
  without: [...without, 'exact dedupe', 'deadLetter'],
  waived: {
    ...inTwoSteps,
    'ledger: a group that several processes end closes once':
      'Without increment a counter is read and written back, which is right within one process only.',
  },
})

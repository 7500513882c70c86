import { describe, it } from 'vitest'
import { describeLedger } from '../../../src/testing/conformance/describe-ledger.js'
import { laterPorts } from './ports.js'
import { inTwoSteps, openPlain, waived, without } from './under-test.js'

describeLedger({
  name: 'plain ports with every optional power, that answer later',
  test: { describe, it },
  open: (clock) => openPlain('all', clock, laterPorts),
  without,
  waived,
})

describeLedger({
  name: 'plain ports with the documented members, that answer later',
  test: { describe, it },
  open: (clock) => openPlain('documented', clock, laterPorts),
  without,
  waived: inTwoSteps,
})

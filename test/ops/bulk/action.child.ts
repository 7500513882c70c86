// A process that runs an action on a backend and prints its progress line by line, so that a killed one has printed all it knew.
// Arguments: address, `redrive` or the id of an action to continue.

import { writeSync } from 'node:fs'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import type { ActionReport } from '../../../src/ops/api.js'
import { openOpsContext } from '../../../src/ops/context.js'
import { backendAt } from './backend-at.js'

const [, , address = '', what = ''] = process.argv
const backend = backendAt(address)
const actions = openActions(openOpsContext(overPlainPorts, backend, {}))
const say = (report: ActionReport): void => void writeSync(1, `${JSON.stringify(report)}\n`)
say(
  what === 'redrive'
    ? await actions.redrive({ type: 'charge' }, { who: 'ann', why: 'the bank is back', onProgress: say })
    : await actions.continue(what, { onProgress: say }),
)
await backend.close()

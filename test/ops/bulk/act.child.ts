// Somebody who acts on a backend from a process of their own, and tells how far they have come, line by line: so that one who
// is killed has told all that they knew. Arguments: address, `redrive` or the id of an action to go on with.
import { writeSync } from 'node:fs'
import { openActs } from '../../../src/ops/acts/index.js'
import type { ActionReport } from '../../../src/ops/api.js'
import { openDesk } from '../../../src/ops/desk.js'
import { backendAt } from './backend-at.js'

const [, , address = '', what = ''] = process.argv
const backend = backendAt(address)
const acts = openActs(openDesk(backend, {}))
const say = (report: ActionReport): void => void writeSync(1, `${JSON.stringify(report)}\n`)
say(
  what === 'redrive'
    ? await acts.redrive({ type: 'charge' }, { who: 'ann', why: 'the bank is back', onProgress: say })
    : await acts.proceed(what, { onProgress: say }),
)
await backend.close()

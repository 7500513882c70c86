// The worker process of `npm run load`: plays one scenario on one backend, and reports what it saw to the process that started it.
import { chain } from './plays/chain.js'
import { drain } from './plays/drain.js'
import { enqueueMany } from './plays/enqueue-many.js'
import { parents } from './plays/parents.js'
import { stopMidDrain } from './plays/stop-mid-drain.js'
import { unawaited } from './plays/unawaited.js'
import { users } from './plays/users.js'
import type { Order } from './report.js'
import type { Play } from './scenarios.js'
import { type Outcome, Stage } from './stage.js'

const PLAYS: Readonly<Record<Play, (stage: Stage) => Promise<Outcome>>> = {
  drain,
  parents,
  chain,
  unawaited,
  'enqueue-many': enqueueMany,
  'stop-mid-drain': stopMidDrain,
  users,
}

const order = JSON.parse(process.argv[2]!) as Order
const stage = await Stage.open(order)
const report = await stage.report(await PLAYS[order.play](stage))
// Reported before anything is closed: a system that could not be stopped would use what is gone.
await new Promise((resolve) => process.send?.({ is: 'report', report }, undefined, {}, resolve))
if (report.broken.length === 0) await stage.close()
process.exit(0)

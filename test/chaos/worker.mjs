// A worker of the fleet: `node worker.mjs ADDRESS TRUTH_FILE`. Told to end by SIGTERM, it drains and exits with 0.
import { createWork, priorityDoer } from 'millrace'
import { backendOf } from './backend-of.mjs'
import { TruthLog } from './truth-log.mjs'
import { workTypes } from './work-types.mjs'

const [address = '', file = ''] = process.argv.slice(2)
const log = new TruthLog(file)
const { leaf, part, fan } = workTypes((line) => log.write(line))
const backend = await backendOf(address)
const w = createWork({
  backend,
  work: [leaf, part, fan],
  doer: priorityDoer({ max: 32 }),
  visibility: 3_000,
  pollInterval: 250,
  keepAlive: true,
  onError: (error, phase) => console.error(phase, error instanceof Error ? `${error.name}: ${error.message}` : error),
})
process.once('SIGTERM', async () => {
  await w.stop()
  await backend.close()
  process.exit(0)
})
// From here on it can be told to end.
await log.write({ is: 'born', at: Date.now() })

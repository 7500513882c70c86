// A worker of the fleet. After SIGTERM it drains and exits with 0.
import { createWork, priorityDoer } from 'millrace'
import { endOnSignal, openMember } from './member.mjs'
import { workTypes } from './work-types.mjs'

const member = await openMember()
const w = createWork({
  ...member.common,
  work: Object.values(workTypes((line) => member.log.write(line))),
  doer: priorityDoer({ max: 32 }),
  visibility: member.settings.leaseMs,
  pollInterval: 250,
  keepAlive: true,
})
await endOnSignal(member, async () => {
  await w.stop()
  return 0
})

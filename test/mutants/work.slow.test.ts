import { describeFaults } from './one-line-faults.js'
import { WORK_FAULTS } from './work/faults.js'
import { FLOW_FAULTS } from './work/flow-faults.js'
import { GATE_FAULTS } from './work/gate-faults.js'
import { PLAIN_FAULTS } from './work/plain-faults.js'
import { SCHEDULE_FAULTS } from './work/schedule-faults.js'

describeFaults('the work engine', WORK_FAULTS)
describeFaults('the flow of work', FLOW_FAULTS)
describeFaults('gates, chains and batches', GATE_FAULTS)
describeFaults('the adapter over plain ports', PLAIN_FAULTS)
describeFaults('schedules', SCHEDULE_FAULTS)

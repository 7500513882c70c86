import { describeFaults } from './one-line-faults.js'
import { WORK_FAULTS } from './work/faults.js'
import { PLAIN_FAULTS } from './work/plain-faults.js'

describeFaults('the work engine', WORK_FAULTS)
describeFaults('the adapter over plain ports', PLAIN_FAULTS)

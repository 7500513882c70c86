import { describeFaults } from './one-line-faults.js'
import { WORK_FAULTS } from './work/faults.js'

describeFaults('the work engine', WORK_FAULTS)

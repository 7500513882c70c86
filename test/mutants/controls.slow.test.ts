import { describeFaults } from './one-line-faults.js'
import { CONTROL_FAULTS } from './work/control-faults.js'

describeFaults('the controls of the work engine', CONTROL_FAULTS)

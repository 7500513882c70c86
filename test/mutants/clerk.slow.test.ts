import { CLERK_FAULTS } from './guild/clerk-faults.js'
import { describeFaults } from './one-line-faults.js'

describeFaults('the host or the Clerk', CLERK_FAULTS)

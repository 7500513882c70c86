import { STACKS_FAULTS } from './guild/stacks-faults.js'
import { describeFaults } from './one-line-faults.js'

describeFaults('Stacks', STACKS_FAULTS)

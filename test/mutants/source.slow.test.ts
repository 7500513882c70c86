import { describeFaults } from './one-line-faults.js'
import { SOURCE_FAULTS } from './source/faults.js'

describeFaults('the source layer', SOURCE_FAULTS)

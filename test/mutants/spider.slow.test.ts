import { SPIDER_FAULTS } from './guild/spider-faults.js'
import { describeFaults } from './one-line-faults.js'

describeFaults('Spider or Clockworks-Retry', SPIDER_FAULTS)

import { onMemory } from '../grounds.js'
import { describeClerk } from './clerk-suite.js'

describeClerk(onMemory)

import { onMemory } from '../grounds.js'
import { describeEndings } from './endings.js'
import { describeRefusals } from './refusals.js'
import { describeSpider } from './scenarios.js'

describeSpider(onMemory)
describeEndings(onMemory)
describeRefusals(onMemory)

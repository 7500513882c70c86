import { onMemory } from '../grounds.js'
import { describeEndings } from './endings.js'
import { describeSpider } from './scenarios.js'

describeSpider(onMemory)
describeEndings(onMemory)

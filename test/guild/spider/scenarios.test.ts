import { onMemory } from '../grounds.js'
import { describeSpider } from './scenarios.js'

describeSpider(onMemory)

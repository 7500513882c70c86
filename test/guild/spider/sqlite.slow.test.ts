import { onSqlite } from '../grounds.js'
import { describeSpider } from './scenarios.js'

describeSpider(onSqlite)

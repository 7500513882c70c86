import { onSqlite } from '../grounds.js'
import { describeEndings } from './endings.js'
import { describeSpider } from './scenarios.js'

describeSpider(onSqlite)
describeEndings(onSqlite)

import { onSqlite } from '../grounds.js'
import { describeClerk } from './clerk-suite.js'

describeClerk(onSqlite)

import { onSqlite } from '../../guild/grounds.js'
import { describeGuildActs } from './act-suite.js'
import { describeGuildReads } from './guild-suite.js'

describeGuildReads(onSqlite)
describeGuildActs(onSqlite)

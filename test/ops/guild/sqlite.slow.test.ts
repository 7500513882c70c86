import { onSqlite } from '../../guild/grounds.js'
import { describeGuildReads } from './guild-suite.js'

describeGuildReads(onSqlite)

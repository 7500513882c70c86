import { describeAgainstModel } from '../against-model.js'
import { sqliteStore } from './store.js'

describeAgainstModel('SQLite', sqliteStore)

import { describeLaws } from '../laws.js'
import { sqliteStore } from './store.js'

describeLaws('SQLite', sqliteStore)

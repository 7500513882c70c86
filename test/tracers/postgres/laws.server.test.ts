import { describeLaws } from '../laws.js'
import { postgresStore } from './store.js'

describeLaws('PostgreSQL', postgresStore)
